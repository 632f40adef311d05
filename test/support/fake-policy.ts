import { insertRule, type RuleInsertion } from '../../src/adapters/storage/policy/policy-edit.js'
import { readPolicy } from '../../src/adapters/storage/policy/policy-text.js'
import { NodeError } from '../../src/kit/errors.js'
import type { PolicySource, PolicyState, WrittenRule } from '../../src/ports/policy.js'

const FILE = '/config/policy.yaml'

/** A policy file in memory. */
export class FakePolicy implements PolicySource {
  text: string
  /** What the next writing fails with. */
  failure: NodeError | null = null
  #state: PolicyState = { file: FILE, rules: [], faults: null }
  #onChange: (state: PolicyState) => void = () => {}

  constructor(text: string) {
    this.text = text
    this.write(text)
    const [fault] = this.#state.faults?.list ?? []
    if (fault !== undefined) throw new Error(`${fault.line}: ${fault.reason}`)
  }

  /** Somebody edits the file. */
  write(text: string): void {
    this.text = text
    const reading = readPolicy(text)
    this.#state = {
      file: FILE,
      rules: reading.ok ? reading.rules : this.#state.rules,
      faults: reading.ok ? null : reading.faults
    }
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

  insert(rule: RuleInsertion['rule'], place: Omit<RuleInsertion, 'rule'>): Promise<WrittenRule> {
    if (this.failure !== null) return Promise.reject(this.failure)
    const { whole, line, text } = insertRule(this.text, { rule, ...place })
    this.write(whole)
    return Promise.resolve({ line, text })
  }

  close(): void {}
}
