"""``python -m pai``: the same as the script ``pai``."""

from pai.cli import main

if __name__ == "__main__":
    main()
