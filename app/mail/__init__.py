"""The outbox: mails written in the business transaction and sent in the background."""
