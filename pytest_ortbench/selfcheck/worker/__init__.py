"""What self-checks ask of a worker beside what every case is asked."""
