"""What was spent, said in numbers and in words."""

from skdp.reporting.privacy_spent import PrivacySpent
from skdp.reporting.statement import privacy_statement

__all__ = ["PrivacySpent", "privacy_statement"]
