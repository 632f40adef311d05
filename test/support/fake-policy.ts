import { insertRule, type RuleInsertion } from '../../src/adapters/storage/policy-edit.js'
import { readPolicy } from '../../src/adapters/storage/policy-text.js'
import { NodeError } from '../../src/kit/errors.js'
import type { PolicySource, PolicyState } from '../../src/ports/policy.js'

const FILE = '/config/policy.yaml'

/** A policy file in memory. */
export class FakePolicy implements PolicySource {
  text: string
  /** What the next writing fails with. */
  failure: NodeError | null = null
  #state: PolicyState = { file: FILE, rules: [], fault: null }
  #onChange: (state: PolicyState) => void = () => {}

  constructor(text: string) {
    this.text = text
    this.write(text)
    if (this.#state.fault !== null) throw new Error(`${this.#state.fault.line}: ${this.#state.fault.reason}`)
  }

  /** Somebody edits the file. */
  write(text: string): void {
    this.text = text
    const reading = readPolicy(text)
    const fault = reading.ok ? null : (reading.faults[0] ?? { line: null, reason: 'broken' })
    this.#state = { file: FILE, rules: reading.ok ? reading.rules : this.#state.rules, fault }
    this.#onChange(this.#state)
  }

  state(): PolicyState {
    return this.#state
  }

  refresh(): Promise<PolicyState> {
    return Promise.resolve(this.#state)
  }

  watch(onChange: (state: PolicyState) => void): void {
    this.#onChange = onChange
  }

  insert(rule: RuleInsertion['rule'], place: Omit<RuleInsertion, 'rule'>): Promise<void> {
    if (this.failure !== null) return Promise.reject(this.failure)
    this.write(insertRule(this.text, { rule, ...place }))
    return Promise.resolve()
  }

  close(): void {}
}
