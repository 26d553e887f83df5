#!/usr/bin/env bash
# Propose a release of PyTorch as a pull request: its pins, the report as its text, the verdict as its
# label. Said again for the same release, it renews the request that is open.
#
# usage: propose.sh RELEASE STATUS BODY    STATUS is what `drift-report` ended with: 0, 1 or 2
set -euo pipefail
release=$1 status=$2 body=$3
words=(stands reread broken)
if ! [[ "$release" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ && "$status" =~ ^[012]$ ]]; then
  echo "propose.sh: $release is no stable release, or $status no verdict; nothing is proposed." >&2
  exit 1
fi
verdict=${words[$status]} branch="torch-$release" title="PyTorch $release: ${words[$status]}"

git switch --quiet --force-create "$branch"
git add requirements.txt data/drift
if git diff --cached --quiet; then
  echo "The book is pinned to torch $release and has its run; nothing is proposed."
  exit 0
fi
git commit --quiet --message "$title"
git push --quiet --force origin "$branch"

for word in "${words[@]}"; do
  gh label create "$word" --description "What another release of PyTorch does to the book" --force
done
number=$(gh pr list --head "$branch" --state open --json number --jq '.[0].number // empty')
if [ -z "$number" ]; then
  gh pr create --head "$branch" --title "$title" --body-file "$body" --label "$verdict"
else
  others=$(printf '%s\n' "${words[@]}" | grep -vx "$verdict" | paste -sd,)
  gh pr edit "$number" --title "$title" --body-file "$body" --add-label "$verdict" \
    --remove-label "$others"
fi
