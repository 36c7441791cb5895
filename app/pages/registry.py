"""Every page there is: its address, and the files that make it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """One page; `section` is the entry of `pages_sections` that switches it.

    `family` is the folder of its templates and modules, and the member of `texts.PARTS`.
    `name` is that of template and module, and of its title's text: `<name>.title`. `icon` is its
    picture in the navigation, which has no pages without one; a `group` begins with the first page
    that has it. A static one works without scripts, and another area answers with it.
    """

    path: str
    section: str
    family: str
    name: str
    icon: str = ""
    group: str = ""
    is_static: bool = False

    @property
    def folder(self) -> str:
        """Where the pages of its section begin."""
        return FOLDERS.get(self.section, "/")

    @property
    def template(self) -> str:
        """The file in `templates`; modules draw the content of consoles."""
        is_drawn = self.section in FOLDERS and not self.is_missing
        return "console/page.html" if is_drawn else f"{self._folder}/{self.name}.html"

    @property
    def module(self) -> str:
        """The file in `static` that begins the page."""
        return f"{self._folder}/{self.name}.js"

    @property
    def has_frames(self) -> bool:
        """Whether it shows other documents of this service in itself."""
        return self.name == "template"

    @property
    def is_missing(self) -> bool:
        """Whether it is the page that says there is no such page."""
        return self.name == "missing"

    def is_below(self, other: "Page") -> bool:
        """Whether it shows one of the things that another page lists."""
        return self.name != other.name and not self.icon and self.path.startswith(f"{other.path}/")

    @property
    def _folder(self) -> str:
        return "console" if self.is_missing else self.family

    @property
    def styles(self) -> tuple[str, ...]:
        """The style sheets in `static`, in their order."""
        own = f"{self.family}/{self.family}.css"
        return "base/base.css", *STYLES.get(self.section, (own,))


def _sign_in(path: str, name: str) -> Page:
    return Page(path, "sign_in", "signin", name)


def _account(path: str, name: str, icon: str = "") -> Page:
    return Page(f"/settings/{path}", "account", "account", name, icon)


def _admin(path: str, name: str, icon: str = "", group: str = "") -> Page:
    return Page(f"/admin/{path}", "admin", "admin", name, icon, group)


PAGES = (
    _sign_in("/login", "login"),
    _sign_in("/register", "register"),
    _sign_in("/reset-password", "reset"),
    _sign_in("/invite/<token>", "invite"),
    _sign_in("/force-password-change", "force_change"),
    _sign_in("/setup", "setup"),
    _sign_in("/setup/storage", "storage"),
    _account("profile", "profile", "person"),
    _account("security", "security", "shield"),
    _account("sessions", "sessions", "devices"),
    _account("tokens", "tokens", "key"),
    _account("connections", "connections", "link"),
    _account("teams", "teams", "team"),
    _account("teams/<int:id>", "team"),
    _account("preferences", "preferences", "sliders"),
    _account("activity", "activity", "clock"),
    _account("data", "data", "box"),
    _admin("overview", "overview", "chart"),
    _admin("users", "users", "people", "people"),
    _admin("users/<int:id>", "user"),
    _admin("users/invitations", "invitations", "mail"),
    _admin("teams", "teams", "team"),
    _admin("teams/<int:id>", "team"),
    _admin("external-auth", "providers", "link", "access"),
    _admin("external-auth/<key>", "provider"),
    _admin("policy-groups", "groups", "box"),
    _admin("settings", "settings", "sliders", "system"),
    _admin("settings/<category>", "settings"),
    _admin("mail", "mail", "outbox"),
    _admin("mail/<template>", "template"),
    _admin("audit", "audit", "clock"),
    _admin("health", "health", "pulse"),
)
JOIN = Page("", "sign_in", "signin", "join", is_static=True)
# Where a section has pages of its own below a path, any other address there is a page that says so.
FOLDERS = {"account": "/settings", "admin": "/admin"}
STYLES = {
    "account": ("console/console.css", "account/account.css"),
    "admin": ("console/console.css", "admin/admin.css"),
}
MISSING = {
    section: Page(f"{folder}/", section, section, "missing") for section, folder in FOLDERS.items()
}
