"""Audits: what an attacker can prove from many runs, held against what is claimed."""

from skdp.audit.epsilon import audit_epsilon
from skdp.audit.result import AuditResult

__all__ = ["AuditResult", "audit_epsilon"]
