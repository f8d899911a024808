"""Many runs laid side by side, and what machines cost."""
