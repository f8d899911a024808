"""``python -m pytest_ortbench.cli``, for where the script is not on the path."""

from pytest_ortbench.cli import main

if __name__ == "__main__":
    main()
