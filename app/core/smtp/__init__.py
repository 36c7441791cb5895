"""Mail over SMTP: connections, messages, and why a server may refuse one."""
