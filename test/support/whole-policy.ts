/**
 * A policy file with every criterion, in block and flow style, with comments between its two rules (lines 3 and 13).
 */
export const WHOLE_POLICY = `# rules of this node
rules:
  - from: { node: laptop, tier: [L0, L1], sandbox: null, agent: operator }
    to:
      agent: [text, files]
      tier: l2
      sandbox: ci
    capability: [text.*, files.read]
    type: request
    sideEffect: [none, read]
    decision: allow   # friends
  # the rest is asked about
  - decision: ask
`
