#!/usr/bin/env bash
# Writes the summary of a run as the one comment of ours on a pull request: the first line of the
# text is a marker, and the comment of this token that begins with it is updated.
# GH_TOKEN, REPOSITORY (owner/name), NUMBER, SUMMARY (a file), KEY (may be empty), RUN_URL.
set -euo pipefail

marker='<!-- pytest-ortbench -->'
if [ -n "$KEY" ]; then
  case "$KEY" in *[!A-Za-z0-9-]*)
    echo "::error title=ortbench::the key '${KEY//[!A-Za-z0-9-]/_}' may have letters, digits and - only"
    exit 1 ;;
  esac
  marker="<!-- pytest-ortbench $KEY -->"
fi

body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
  echo "$marker"
  if [ -s "$SUMMARY" ]; then
    tail -n +2 "$SUMMARY"
  else
    echo '## ❌ ONNX models: pytest ended before the run began'
  fi
  echo
  echo "[Log and files of this run]($RUN_URL)"
} > "$body"

# Only a comment of the same author is ours, whatever others write.
query='query($owner: String!, $name: String!, $number: Int!, $endCursor: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(first: 100, after: $endCursor) {
        nodes { databaseId body viewerDidAuthor }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}'
# jq, which is part of gh, gets the marker from the environment.
export marker
if ! id=$(gh api graphql --paginate -f query="$query" \
    -f owner="${REPOSITORY%%/*}" -f name="${REPOSITORY#*/}" -F number="$NUMBER" \
    --jq '.data.repository.pullRequest.comments.nodes[]
          | select(.viewerDidAuthor and (.body | startswith(env.marker))) | .databaseId' \
    | head -n 1); then
  id=''
fi

if [ -n "$id" ]; then
  target=(--method PATCH "repos/$REPOSITORY/issues/comments/$id")
else
  target=(--method POST "repos/$REPOSITORY/issues/$NUMBER/comments")
fi
if ! gh api "${target[@]}" -F body=@"$body" --silent; then
  # The token of a fork's pull request may only read; the job summary says the same.
  echo '::warning title=ortbench::the comment could not be written: the job needs the permission pull-requests:write, which pull requests of forks do not have; the job summary says the same'
fi
