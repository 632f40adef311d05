import type { PolicyRule } from '../domain/policy/rule.js'

/** A fault of the policy file. */
export interface PolicyFault {
  /** 1-based; null when the fault has no place. */
  readonly line: number | null
  readonly reason: string
}

/** The faults of the policy file, in the order of its lines. */
export interface PolicyFaults {
  /** At least one, at most 20. */
  readonly list: readonly PolicyFault[]
  /** How many more there are. */
  readonly more: number
}

/** The rules in force. */
export interface PolicyState {
  /** Absolute path of the file, whether it is there or not. Without one there are no rules. */
  readonly file: string
  readonly rules: readonly PolicyRule[]
  /**
   * Faults of the file, which cannot be used now: the rules are those of its last good version. null: the rules are the
   * file's.
   */
  readonly faults: PolicyFaults | null
}

/** Where a rule was written, and how it reads. */
export interface WrittenRule {
  readonly line: number
  /** The rule as YAML, on one line. */
  readonly text: string
}

/** The policy file of the node. */
export interface PolicySource {
  /** The rules now. */
  state(): PolicyState
  /** Reads the file now; the watcher gets a changed one before this resolves. */
  refresh(): Promise<PolicyState>
  /** Calls back with each change. One watcher. */
  watch(onChange: (state: PolicyState) => void): void
  /**
   * Inserts a rule before the rule at a line, atomically; the rest of the file, comments included, stays. `note`
   * follows it as a comment. Resolves with the inserted rule, after the watcher was called.
   * @throws NodeError CONFIG_INVALID when the file is broken or cannot take the rule; DISK_FULL, NO_PERMISSION
   */
  insert(
    rule: Omit<PolicyRule, 'line'>,
    place: { readonly beforeLine: number; readonly note: string }
  ): Promise<WrittenRule>
  /** Stops watching. */
  close(): void
}
