"""`flask mail`: the outbox, a test of the SMTP server, and template previews."""

from dataclasses import asdict
from pathlib import Path

import click

from app.core import email_address
from app.core.access import COMMAND_LINE
from app.core.errors import BadRequest
from app.mail import operators, previews, service
from app.mail.models import MailStatus
from app.mail.templates import Template
from app.settings import page_keys
from app.store.paging import Paging
from app.web.cli import (
    REFUSED_EXIT_CODE,
    Commands,
    Output,
    Word,
    details,
    limit_option,
    printable,
    progress,
    table,
)
from app.web.runtime import runtime

group = Commands(
    "mail", help="The outbox, a test of the SMTP server, and previews of the templates."
)

COLUMNS = ("created_at", "template", "recipient", "status", "attempts", "due_at", "last_error")
AS_FILE = "sent (file)"


@group.command("test")
@click.argument("address")
def send_test(address: str) -> Output:
    """Send a test mail at once, and say what the SMTP server answers."""
    try:
        recipient = email_address.normalized(address)
    except ValueError as error:
        raise BadRequest(f"This is not a valid e-mail address: {error}") from None
    progress(f"sending a mail to {recipient}")
    operators.send_test(runtime(), COMMAND_LINE, recipient)
    return Output({"sent_to": recipient}, f"the SMTP server accepted a mail to {recipient}")


@group.command("outbox")
@click.option("--status", type=Word(MailStatus), help="Only mails with this status.")
@limit_option(100, "mails")
def outbox(status: MailStatus | None, limit: int) -> Output:
    """List mails and their status, newest first.

    "sent (file)" means that it was written to a file because no SMTP server was set.
    """
    data = operators.page(runtime(), Paging(limit, 0, "created_at"), status=status).items
    titles = [name.removesuffix("_at").replace("_", " ").upper() for name in COLUMNS]
    shown = [{**mail, "status": AS_FILE} if mail.pop("is_file") else mail for mail in data]
    return Output(data, table(titles, [[mail[name] for name in COLUMNS] for mail in shown]))


@group.command("flush")
def flush() -> Output:
    """Try every waiting mail now, until the SMTP server itself fails."""
    progress("trying every waiting mail")
    flushed = operators.flush(runtime(), COMMAND_LINE)
    text = f"{flushed.sent} sent, {flushed.failed} given up, {flushed.waiting} still waiting"
    if flushed.sent and not service.is_smtp_configured(runtime()):
        text += f"; no SMTP server is set, so they are files in {runtime().config.mail_dir}"
    if flushed.error is not None:
        click.echo(f"Error: {printable(flushed.error)}", err=True)
    return Output(asdict(flushed), text, exit_code=REFUSED_EXIT_CODE if flushed.error else 0)


@group.command("retry")
@click.argument("id")
def retry(id: str) -> Output:
    """Make a mail that waits due now, for the service to send."""
    mail = operators.retry(runtime(), COMMAND_LINE, id)
    del mail["is_file"]
    return Output(mail, f"the mail to {printable(mail['recipient'])} is due now")


@group.command("preview", epilog=f"TEMPLATE is one of {', '.join(Template)}.")
@click.argument("template", metavar="TEMPLATE", type=Word(Template))
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file."
)
@click.option("--text", "as_text", is_flag=True, help="The text part instead of the HTML.")
@click.option(
    "--language",
    type=click.Choice(page_keys.LANGUAGES),
    help="Of the reader; by default the site's first.",
)
def preview(
    template: Template, output: Path | None, language: str | None, *, as_text: bool
) -> Output:
    """Show the mail that TEMPLATE makes of sample values, as it would be sent now."""
    shown = previews.preview(runtime(), template, previews.Draft(language=language))
    rendered = shown.rendered
    part = rendered.text if as_text else rendered.html
    data = {
        "template": template,
        "subject": rendered.subject,
        "html": rendered.html,
        "text": rendered.text,
        "unknown_placeholders": shown.unknown,
    }
    if shown.unknown:
        click.echo(f"Unknown placeholders: {', '.join(shown.unknown)}", err=True)
    if output is None:
        return Output(data, part)
    output.write_text(part, encoding="utf-8")
    return Output(data, details({"subject": rendered.subject, "file": output}))
