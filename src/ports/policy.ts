import type { PolicyRule } from '../domain/policy/rule.js'

/** What is wrong with the policy file. */
export interface PolicyFault {
  /** 1-based; null when the fault has no place. */
  readonly line: number | null
  readonly reason: string
}

/** The rules in force. */
export interface PolicyState {
  /** Absolute path of the file, whether it is there or not. Without one there are no rules. */
  readonly file: string
  readonly rules: readonly PolicyRule[]
  /** The file cannot be used now: the rules are those of its last good version. null: they are what it says. */
  readonly fault: PolicyFault | null
}

/** The policy file of the node. */
export interface PolicySource {
  /** The rules now. */
  state(): PolicyState
  /** Looks at the file now; a changed one is told to the watcher before this resolves. */
  refresh(): Promise<PolicyState>
  /** Calls back with each change. One watcher. */
  watch(onChange: (state: PolicyState) => void): void
  /**
   * Writes a rule in front of the rule that stands at a line, atomically; everything else in the file stays as it is, comments
   * too. `note` follows it as a comment. The watcher is told before this resolves.
   * @throws NodeError CONFIG_INVALID when the file is broken or cannot take the rule; DISK_FULL, NO_PERMISSION.
   */
  insert(rule: Omit<PolicyRule, 'line'>, place: { readonly beforeLine: number; readonly note: string }): Promise<void>
  /** Stops watching. */
  close(): void
}
