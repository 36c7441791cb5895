"""Second factors: TOTP, recovery codes and e-mail codes, and managing them."""
