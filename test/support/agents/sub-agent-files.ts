/** Sub-agent files of each client, by their paths, with the oddities of published ones. */
export const SUB_AGENT_FILES: Readonly<Record<string, string>> = {
  'claude/log-reader.md': `---
name: log-reader
description: Use this agent to read logs. Examples: <example>user: "Why did it stop?"</example>\\n\\nProactively: after each failure.
tools: Read, Grep, Bash
model: sonnet
color: cyan
---

You read logs. It's all you do.
`,
  'copilot/CSharpSmith.agent.md': `---
name: "C# Smith & Sons"
description: 'Writes C# code'
tools: ['search', 'edit/editFiles']
model: ['GPT-5 (copilot)', 'Claude']
target: vscode
mcp-servers:
  docs:
    type: local
    command: docs-server
---
# C# Smith

Write C#.
`,
  'copilot/Über den Wolken.agent.md':
    '---\r\ndescription: [Preview] plans flights: short ones\r\nhandoffs: []\r\n---\r\nPlan a flight.\r\n',
  'gemini/data_miner.md': `---
name: data_miner
description: |
  Finds data.
  Second line: with a colon.
kind: local
tools:
  - read_file
  - mcp_*
temperature: 0.2
max_turns: 10
timeout_mins: 5
---
Mine data.`,
  'opencode/docs-writer.md': `---
description: Writes docs
mode: subagent
model: anthropic/claude-sonnet
permission:
  bash:
    "*": ask
    "git *": allow
tools:
  write: false
---
Write docs.
`
}
