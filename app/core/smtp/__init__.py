"""Mail by SMTP: connections, letters, and what a server may answer."""
