"""Audits: lower bounds on the privacy loss, from one run or many, compared with the claim."""

from skdp.audit.epsilon import audit_epsilon
from skdp.audit.membership import MembershipResult, membership_inference
from skdp.audit.one_run import audit_in_one_run
from skdp.audit.result import AuditDisplay, AuditResult, MembershipDisplay

__all__ = [
    "AuditDisplay",
    "AuditResult",
    "MembershipDisplay",
    "MembershipResult",
    "audit_epsilon",
    "audit_in_one_run",
    "membership_inference",
]
