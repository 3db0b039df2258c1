"""Parameters, pipelines, and types of scikit-learn: what every layer may use."""
