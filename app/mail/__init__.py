"""The mail outbox: mails are queued in the business transaction and sent in the background."""
