// Faults in what is kept on record: the audit log and log lines; see list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const RECORD_MUTANTS = [
  {
    name: 'the chain of the audit log is not checked',
    file: 'src/adapters/storage/audit/audit-verify.ts',
    find: 'line.seq === this.#last.seq + 1 && line.prev === this.#last.hash',
    put: 'line.seq === this.#last.seq + 1',
    test: 'adapters/storage/audit/audit-verify',
    title: 'a line that was changed and sealed anew is found by the line after it'
  },
  {
    name: 'a line of the audit log may be changed without its hash telling',
    file: 'src/adapters/storage/audit/audit-line.ts',
    find: 'return hashOf(body) === hash ? value : null',
    put: "return hashOf(body) === hash || hash !== '' ? value : null",
    test: 'adapters/storage/audit/audit-verify',
    title: 'any change of a character in any line is found'
  },
  {
    name: 'lines missing at the end of the audit log are not missed',
    file: 'src/adapters/storage/audit/audit-verify.ts',
    find: 'return this.isPastHead && (this.#sawFirst || this.#last === null)',
    put: 'return this.#sawFirst || this.#last === null',
    test: 'adapters/storage/audit/audit-verify',
    title: 'removed lines are found, wherever they stood'
  },
  {
    name: 'only the first broken chain of the audit log is named',
    file: 'src/adapters/storage/audit/audit-verify.ts',
    find: 'if (check.broken !== null) broken.push(',
    put: 'if (check.broken !== null && broken.length === 0) broken.push(',
    test: 'adapters/storage/audit/audit-verify',
    title: 'every broken chain is named, with the first line that does not hold'
  },
  {
    name: 'an audit log that is gone altogether is taken for none',
    file: 'src/adapters/storage/audit/audit-log.ts',
    find: 'new Set([...noted, ...heads.flatMap(',
    put: 'new Set([...heads.flatMap(',
    test: 'adapters/storage/audit/audit-verify',
    title: 'a log that is gone altogether is missed by the note outside of it'
  },
  {
    name: 'a chain of the audit log whose head is gone goes on as if it were whole',
    file: 'src/adapters/storage/audit/audit-writer.ts',
    find: 'seq: (last?.seq ?? 0) + 1, hash: UNPROVEN,',
    put: 'seq: last?.seq ?? 0, hash: last?.hash ?? GENESIS,',
    test: 'adapters/storage/audit/audit-writer.prove',
    title: 'a chain whose head was taken away or made unreadable stays broken over every start'
  },
  {
    name: 'the last line of a chain of the audit log is believed, whatever the head says',
    file: 'src/adapters/storage/audit/audit-writer.ts',
    find: 'seq === 0 || named?.hash === hash',
    put: 'seq === 0 || named?.seq === seq',
    test: 'adapters/storage/audit/audit-writer',
    title: 'a last line that was written anew, with a hash that fits, stays broken after the next start'
  },
  {
    name: 'a break of the audit log is forgotten with the file that it is in',
    file: 'src/adapters/storage/audit/audit-writer.ts',
    find: 'if (!(await leadTo(first, removed, this.#head.first))) return',
    put: 'await leadTo(first, removed, this.#head.first)',
    test: 'adapters/storage/audit/audit-writer',
    title: 'a break is not forgotten when the file that it is in is removed for its age'
  },
  {
    name: 'the chains of the audit log are named before they have heads',
    file: 'src/adapters/storage/audit/audit-log.ts',
    find: 'await writeHead({ dir, name }, FRESH_HEAD)',
    put: 'await readHead({ dir, name })',
    test: 'adapters/storage/audit/audit-writer.prove',
    title: 'a crash at any write leaves a valid log, with every line that was reported as on disk'
  },
  {
    name: 'counts of repeats wait in memory for the end of their time',
    file: 'src/adapters/storage/audit/audit-file.ts',
    find: 'if (this.#countTimer === null && this.#windows.hasCounts) this.#countLater()',
    put: '',
    test: 'adapters/storage/audit/audit-file',
    title: 'equal refusals of one peer within 10 s are the first line, one with a count soon, and one for later ones'
  },
  {
    name: 'repeats that go on wait ever longer for their count',
    file: 'src/adapters/storage/audit/audit-repeats.ts',
    find: 'maxMs: MAX_WAIT_MS',
    put: 'maxMs: Number.POSITIVE_INFINITY',
    test: 'adapters/storage/audit/audit-repeats',
    title: 'while events go on, none of longer than nine seconds ago is without a line'
  },
  {
    name: 'repeats that go on have a line a second',
    file: 'src/adapters/storage/audit/audit-repeats.ts',
    find: 'window.dueAt = now + backoffMs({ baseMs: FIRST_WAIT_MS, maxMs: MAX_WAIT_MS }, window.lines++)',
    put: 'window.dueAt = now',
    test: 'adapters/storage/audit/audit-log',
    title: 'steady exchanges across tiers are one line and few counts a minute'
  },
  {
    name: 'refusals share the chain of membership changes',
    file: 'src/adapters/storage/audit/audit-chains.ts',
    find: "{ name: 'changes', kinds: ['membership'],",
    put: "{ name: 'changes', kinds: ['membership', 'refusal'],",
    test: 'adapters/storage/audit/audit-log',
    title: 'no flood of refusals or exchanges pushes a revocation or an approval out, for any varied fields'
  },
  {
    name: 'secrets below the first level are logged',
    file: 'src/adapters/telemetry/redact.ts',
    find: 'this.#hidden.has(plainKey(key)) ? REDACTED',
    put: 'depth === 0 && this.#hidden.has(plainKey(key)) ? REDACTED',
    test: 'adapters/telemetry/redact',
    title: 'values of secret keys are redacted, in any case and at every depth, and the original is not changed'
  },
  {
    name: 'keys of secrets are compared with their case',
    file: 'src/adapters/telemetry/redact.ts',
    find: 'return key.toLowerCase().replace',
    put: 'return key.replace',
    test: 'adapters/telemetry/redact',
    title: 'values of secret keys are redacted, in any case and at every depth, and the original is not changed'
  },
  {
    name: 'a line of folded events names one sender for all',
    file: 'src/adapters/storage/audit/audit-repeats.ts',
    find: 'bits |= 32',
    put: 'bits |= 0',
    test: 'adapters/storage/audit/audit-repeats',
    title: 'a line of folded events has their common fields, and names the fields that differ'
  },
  {
    name: 'a file of the audit log that cannot be opened anew moves all others once more',
    file: 'src/adapters/storage/audit/audit-writer.ts',
    find: 'this.#isMoved = true',
    put: 'this.#isMoved = false',
    test: 'adapters/storage/audit/audit-writer',
    title: 'a new file that cannot be made durable at first pushes out none that is not old'
  },
  {
    name: 'an emptied file of the audit log is filled up with zeros',
    file: 'src/adapters/storage/audit/audit-writer.ts',
    find: '(isSame && open.size >= this.#size)',
    put: 'isSame',
    test: 'adapters/storage/audit/audit-file',
    title: 'lines go to a file that was emptied or removed under a running node'
  }
]
