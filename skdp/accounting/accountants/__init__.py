"""What releases cost: each accountant folds the answers of their analyses into one number."""
