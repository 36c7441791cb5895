"""bin/gatehouse."""

from app.administration.cli import main

if __name__ == "__main__":
    main()
