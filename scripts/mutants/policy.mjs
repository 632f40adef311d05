// One-line faults in policy and approvals, and the test that must notice each.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const POLICY_MUTANTS = [
  {
    name: 'the policy of the node is not asked',
    file: 'src/domain/routing/decide.ts',
    find: 'isOpening ? policyVerdict(rules.policy',
    put: '!isOpening ? policyVerdict(rules.policy',
    test: 'domain/routing/policy-verdict',
    title: 'a policy decides between sandboxes and tiers'
  },
  {
    name: 'a rule that can ask nobody hides the rules after it',
    file: 'src/domain/policy/match.ts',
    find: '(rule.isAsk && !mayAsk)) continue',
    put: '(rule.isAsk && rule === undefined)) continue',
    test: 'domain/routing/policy-verdict',
    title: 'a rule that can ask nobody is passed over: the next one that matches decides'
  },
  {
    name: 'what a person here is asked about is denied on its way to them',
    file: 'src/node/messaging/outbound.ts',
    find: 'isArriving: isHere',
    put: 'isArriving: false',
    test: 'node/api/policy',
    title: 'where nobody here can be asked a later deny refuses and a later allow allows'
  },
  {
    name: 'a policy opens sandboxes',
    file: 'src/domain/routing/decide.ts',
    find: 'if (boxed !== null) return boxed',
    put: 'if (boxed !== null && !rules.policy) return boxed',
    test: 'domain/routing/policy-verdict',
    title: 'a policy decides between sandboxes and tiers'
  },
  {
    name: 'an agent id that begins like the one of a rule fits it',
    file: 'src/domain/policy/match.ts',
    find: 'id.length === at && address.startsWith(id)',
    put: 'address.startsWith(id)',
    test: 'domain/policy/match',
    title: 'an agent id in a rule matches that id alone'
  },
  {
    name: 'what a person allows is not decided on again',
    file: 'src/node/policy/approvals.ts',
    find: 'const refusal = refusalNow(this.#deps.inbound, one)',
    put: 'const refusal = refusalNow(this.#deps.inbound, one) && null',
    test: 'node/policy/approvals',
    title: 'a request that the rules refuse by the time it is allowed does not run'
  },
  {
    name: 'the same request waits as often as it is sent',
    file: 'src/node/policy/approvals.ts',
    find: "if (joining === 'new') {",
    put: "if (joining !== 'full') {",
    test: 'node/policy/approvals',
    title: 'the same request sent again waits once'
  },
  {
    name: 'whoever knows the ids of a message that waits rides on its approval',
    file: 'src/node/policy/pending-approvals.ts',
    find: '!isEqual(untimed(one.incoming.payload), untimed(incoming.payload))',
    put: 'one.incoming.payload === null',
    test: 'node/policy/approvals.seen',
    title: 'a copy with the same ids and other content is not covered by an approval, and reaches no listener'
  },
  {
    name: 'a remembered permission holds whatever the capability may do one day',
    file: 'src/node/policy/policy-store.ts',
    find: 'sideEffect: isAllowed && sideEffect !== null',
    put: 'sideEffect: !isAllowed && sideEffect !== null',
    test: 'node/policy/approvals.seen',
    title: 'a remembered permission is for the side effect that a person saw'
  },
  {
    name: 'nobody is told of names in rules that no node has',
    file: 'src/node/policy/policy-store.ts',
    find: 'if (nodes.length === 1) return []',
    put: 'if (nodes.length < 2) return []',
    test: 'node/policy/policy-store',
    title: 'a rule for a name without a node is a warning, a problem, and reported at once'
  },
  {
    name: 'a name that may mean several nodes allows each of them',
    file: 'src/domain/policy/match.ts',
    find: 'if (ids.length > maxMeant) continue',
    put: 'if (ids.length > 100) continue',
    test: 'domain/policy/match',
    title: 'a name that may stand for several nodes denies and asks about each, and allows none of them'
  },
  {
    name: 'whoever calls himself like the beginning of an id takes its rules over',
    file: 'src/domain/routing/names.ts',
    find: 'return isNamed(first[1]) ? [first[0]] :',
    put: 'const named = fitting.find(([, name]) => isNamed(name))\n  return named ? [named[0]] :',
    test: 'node/policy/policy-store',
    title:
      'the beginning of an id means its node; where it may mean several, each is denied, none is allowed, and it is reported'
  },
  {
    name: 'an admin lets in a node whose name looks like that of a member',
    file: 'src/domain/membership/admit.ts',
    find: 'return nameCode === null ? admit',
    put: "return nameCode !== 'INVALID_INPUT' ? admit",
    test: 'domain/membership/admit',
    title: 'a name that no node may take, or that looks like that of a member, is denied; the invite stays good'
  },
  {
    name: 'a letter that nobody sees passes in a name',
    file: 'src/kit/names/rule.ts',
    find: "if (HIDDEN.test(character)) return 'is invisible'",
    put: '',
    test: 'kit/names/rule',
    title: 'a name that holds one of these characters is refused, and the refusal names the character and its place'
  },
  {
    name: 'a look-alike that got in shows as the name that it looks like',
    file: 'src/domain/routing/names.ts',
    find: 'const isLike = looks.find(base) !== null',
    put: 'const isLike = looks === null',
    test: 'node/policy/deceiving-names',
    title:
      'a member that got in as a look-alike is shown by its key and with its characters written out, in approvals and events'
  },
  {
    name: 'an item that a person denied is asked of the same agent again',
    file: 'src/domain/swarm/machine.ts',
    find: 'if (outcome.isRefusal === true) item',
    put: 'if (outcome.isUnsent === true) item',
    test: 'node/policy/pending-approvals',
    title: 'an item that a person did not allow is not asked of the same agent again'
  },
  {
    name: 'a guest decides approvals',
    file: 'src/node/api/machine-approvals.ts',
    find: "&& trust.of(peer) === 'mine'\n  if",
    put: '\n  if',
    test: 'node/api/machine-approvals',
    title: 'a guest neither lists nor decides with any claim, and the audit log has its calls'
  },
  {
    name: 'a decision of another machine has the rights of its node, not of its caller',
    file: 'src/node/api/machine-approvals.ts',
    find: 'card: by, hops',
    put: 'card: null, hops',
    test: 'node/api/machine-approvals',
    title:
      'a weaker, sandboxed or limited caller, an agent and a caller without the right decide nothing: neither side lets them'
  },
  {
    name: 'a weaker machine decides about guests that are stronger',
    file: 'src/domain/policy/approval-deciders.ts',
    find: 'machineTier <= message.senderTier && ',
    put: '',
    test: 'node/api/machine-approvals',
    title:
      'under each policy a weaker machine of the owner decides exactly the work of guests that it may do itself, of guests that are not stronger'
  },
  {
    name: 'a weaker machine decides about work that it may not do itself',
    file: 'src/domain/policy/approval-deciders.ts',
    find: ' && message.isFree()',
    put: '',
    test: 'node/api/machine-approvals',
    title:
      'under each policy a weaker machine of the owner decides exactly the work of guests that it may do itself, of guests that are not stronger'
  },
  {
    name: 'a decision of another machine counts for the beginning of an id',
    file: 'src/node/api/machine-approvals.ts',
    find: "id !== call.id) throw new NodeError('APPROVAL_NOT_FOUND', `no waiting approval",
    put: "id === '') throw new NodeError('APPROVAL_NOT_FOUND', `no waiting approval",
    test: 'node/api/machine-approvals',
    title: 'bytes that are no call, and ids that are no whole id, decide nothing'
  },
  {
    name: 'the time left is that of this node, whatever the caller gives',
    file: 'src/node/policy/approvals.ts',
    find: 'const isCallers = callerMs < limits.approvalTimeoutMs',
    put: 'const isCallers = callerMs < 0',
    test: 'node/api/approvals',
    title: 'a request of an older build waits for approval until its caller gives up, where that is earlier'
  },
  {
    name: 'the sandbox of a node takes the place of the one that its agent asks for',
    file: 'src/domain/card/sandbox.ts',
    find: 'certified === null || asked === certified',
    put: 'certified === null || asked !== certified',
    test: 'node/cards/local-cards',
    title: 'an agent that asks for another sandbox than that of its node is not offered'
  },
  {
    name: 'an agent of another sandbox is a problem, and offered all the same',
    file: 'src/node/cards/local-cards.ts',
    find: 'definitions.filter((one) => faultOf(one) === null)',
    put: 'definitions.filter((one) => faultOf(one) !== undefined)',
    test: 'node/cards/local-cards',
    title: 'an agent that asks for another sandbox than that of its node is not offered'
  },
  {
    name: 'a person decides on what nobody waits for any more',
    file: 'src/node/policy/approvals.ts',
    find: 'return this.#deps.clock.monotonic() >= callerEndsAt',
    put: 'return this.#deps.clock.monotonic() < 0 * callerEndsAt',
    test: 'node/policy/approvals.caller-time',
    title:
      'a request without approval ends with its own code when the time of its caller is over, also when the caller cannot be reached'
  },
  {
    name: 'what waits for a person does so whoever waits for it',
    file: 'src/node/policy/approvals.ts',
    find: 'clock.after(isCallers ? leftMs + limits.heartbeatMs : leftMs',
    put: 'clock.after(isCallers ? limits.approvalTimeoutMs : leftMs',
    test: 'node/policy/approvals.caller-time',
    title:
      'a request without approval ends with its own code when the time of its caller is over, also when the caller cannot be reached'
  },
  {
    name: 'a sender without a link is not told that its request waits for a person',
    file: 'src/node/policy/pending-approvals.ts',
    find: "nextHop.sendControl(peer, 'approval', { requests: keys, approvals })",
    put: 'void nextHop',
    test: 'node/policy/approvals.caller-time',
    title: 'over a hop the sender sees that its request waits for a person'
  },
  {
    name: 'what all ids begin with decides the only one that waits',
    file: 'src/kit/resolve-id.ts',
    find: 'return text.length >= prefix.length + MIN_ID_CHARACTERS',
    put: 'return text.length >= 0 * prefix.length + MIN_ID_CHARACTERS',
    test: 'node/policy/approvals.caller-time',
    title: 'the common beginning of all ids is no name of the only waiting request'
  },
  {
    name: 'a refusal does not say whose it is',
    file: 'src/node/requests/caller/request-codec.ts',
    find: "outcome === 'FAILED' ? refusedThere(error, peer) : error",
    put: 'error',
    test: 'node/messaging/error-hints',
    title: 'the caller reads the name of the node whose person, or whose rule, refused, also in its task'
  },
  {
    name: 'agents without a capability are counted as left out by rules',
    file: 'src/node/api/broadcast-outcome.ts',
    find: "outcome === 'SKIPPED' ? 'skipped'",
    put: "outcome === '' ? 'skipped'",
    test: 'node/api/broadcast-outcome',
    title: 'a failed broadcast counts apart agents left out by rules, refused, without the capability and offline'
  },
  {
    name: 'a vanished policy file opens everything',
    file: 'src/adapters/storage/policy/policy-file.ts',
    find: 'if (text === null && this.#text !== null)',
    put: 'if (text === null && this.#text === null)',
    test: 'adapters/storage/policy/policy-file',
    title: 'a broken or vanished file leaves the last good rules'
  }
]
