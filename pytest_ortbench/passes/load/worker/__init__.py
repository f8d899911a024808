"""What puts a case under load, inside its worker: the generator, and reading its logs."""
