/**
 * The text of an agent file whose `a2a` block holds these lines (indented by two already) beside one capability and a
 * runtime.
 */
export function agentText(
  name: string,
  extra: readonly string[] = [],
  runtime = '{ type: command, command: [cat] }'
): string {
  return [
    '---',
    `name: ${name}`,
    'description: An agent under test.',
    'a2a:',
    '  capabilities:',
    '    - id: subject.do',
    `  runtime: ${runtime}`,
    ...extra,
    '---',
    'Instructions.',
    ''
  ].join('\n')
}
