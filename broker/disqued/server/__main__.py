"""`python -m disqued.server`."""

from disqued.server.main import main

if __name__ == "__main__":
    main()
