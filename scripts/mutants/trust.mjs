// One-line faults in machines of one person and guests, and the test that must notice each.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const TRUST_MUTANTS = [
  {
    name: 'an admin that is a guest makes machines of the maker of an invite',
    file: 'src/domain/membership/trust.ts',
    find: 'via: admitters[node] ?? by',
    put: 'via: admitters[by] ?? by',
    test: 'domain/membership/trust',
    title: 'an admin that is a guest makes no machine of the maker by an invite of the maker'
  },
  {
    name: 'a guest counts where another machine calls it mine',
    file: 'src/domain/membership/trust.ts',
    find: 'if (found.has(node) || guests.has(node)) return',
    put: 'if (found.has(node) || guests.has(self)) return',
    test: 'domain/membership/trust',
    title: 'machines of machines are own ones, and one that any of them calls a guest is none'
  },
  {
    name: 'a guest calls a machine a guest',
    file: 'src/domain/membership/trust.ts',
    find: "if (trust === 'guest') guests.add(node)",
    put: 'void trust\n    for (const of of rated.values()) for (const [node, { trust }] of of) if (trust === "guest") guests.add(node)',
    test: 'domain/membership/trust',
    title: 'a member that a nearer machine calls a guest takes no machine from the others'
  },
  {
    name: 'a newcomer regards its inviter as its own by any code',
    file: 'src/domain/membership/trust.ts',
    find: 'acceptsInviter ? inviterOf(view, self) : null',
    put: 'inviterOf(view, self)',
    test: 'domain/membership/trust',
    title: 'a newcomer is a guest unless its invite says mine'
  },
  {
    name: 'an entry about one member puts aside those about others',
    file: 'src/domain/membership/fold/member.ts',
    find: 'serialFault(known[nodeKey]?.serial ?? 0, serial)',
    put: 'serialFault(Math.max(0, ...Object.values(known).map((one) => one.serial)), serial)',
    test: 'domain/membership/trust',
    title: 'entries of one author about several members have their effect in any order'
  },
  {
    name: 'an acceptance that failed is not signed again',
    file: 'src/node/policy/peer-trust.ts',
    find: '.finally(() => (this.#isAccepting = false))',
    put: '',
    test: 'node/policy/peer-trust',
    title: 'an acceptance that the log did not take is submitted again with the next change'
  },
  {
    name: 'two entries at once about one member have one serial',
    file: 'src/node/policy/peer-trust.ts',
    find: 'await before?.catch(() => {})',
    put: 'void before',
    test: 'node/policy/peer-trust',
    title: 'of ratings set at the same time none is lost'
  },
  {
    name: 'a rule for guests is one for machines of the same person',
    file: 'src/domain/policy/match.ts',
    find: 'nodes.trustOf(address.slice(at + 1)) !== criteria.trust',
    put: 'nodes.trustOf(address.slice(at + 1)) === criteria.trust',
    test: 'node/policy/guests',
    title: 'work of a guest waits for the owner by any path'
  },
  {
    name: 'a guest works over A2A with the rights of the asked node',
    file: 'src/node/gateway/resolve-agent.ts',
    find: "const own = { agentId: by.agentId ?? OPERATOR, nodeId: by.id ?? '' }",
    put: 'const own = { agentId: OPERATOR, nodeId: this.#deps.self }',
    test: 'node/policy/guests',
    title: 'a guest that calls over A2A is refused, as nobody is asked there'
  },
  {
    name: 'a weaker caller makes an invite for a machine of the person of the node',
    file: 'src/node/api/node-api.ts',
    find: "if (refusal !== null && params.trust === 'mine') throw refusal",
    put: '',
    test: 'node/api/node-api.authorization',
    title: 'a caller that is weaker than the node, sandboxed or limited to some agents calls no machine its own'
  },
  {
    name: 'a swarm leaves guests out of work without side effects only',
    file: 'src/node/swarms/eligibility.ts',
    find: 'some((id) => !changesNothing(',
    put: 'some((id) => changesNothing(',
    test: 'node/swarms/eligibility',
    title: 'a guest is left out of work with side effects'
  },
  {
    name: 'only the first capability of a stage decides about a guest',
    file: 'src/node/swarms/eligibility.ts',
    find: 'return [capability, ...further].some(',
    put: 'return [capability, ...further].slice(0, 1).some(',
    test: 'node/swarms/eligibility',
    title: 'a further capability with side effects leaves a guest out'
  },
  {
    name: 'after a takeover the guests of the coordinator are left out',
    file: 'src/node/swarms/eligibility.ts',
    find: 'const launcher = voters?.[0]',
    put: 'const launcher = voters?.[9]',
    test: 'node/swarms/eligibility',
    title: 'a node that took a swarm over leaves out the guests of its launcher'
  },
  {
    name: 'a home without a rule about guests leaves them out',
    file: 'src/node/policy/guests.ts',
    find: 'if (!this.#areAsked || ',
    put: 'if (',
    test: 'node/policy/guests',
    title: 'a home without a rule about guests has none'
  },
  {
    name: 'a coordinator cancels a swarm for a guest that asks',
    file: 'src/node/swarms/consensus/replicated-swarm.ts',
    find: 'if (!this.#role.mayCancel(from)) return',
    put: 'if (!this.#role.mayCancel()) return',
    test: 'node/swarms/consensus/cancel-request',
    title: 'the coordinator ignores a guest that asks to cancel all the same'
  },
  {
    name: 'the trust of the coordinator decides who cancels a swarm',
    file: 'src/node/swarms/consensus/leadership.ts',
    find: 'return !this.#deps.guests.has(node, launcher)',
    put: 'return !this.#deps.guests.has(node, launcher && undefined)',
    test: 'node/swarms/consensus/cancel-request',
    title: 'a guest of the launcher cannot cancel its swarm'
  },
  {
    name: 'a recorded request to cancel counts for a guest',
    file: 'src/node/swarms/consensus/cancel-request.ts',
    find: 'this.#isTimely && this.#swarm.isAllowed()',
    put: 'this.#isTimely',
    test: 'node/swarms/consensus/cancel-request',
    title: 'a request to cancel is void while its node is a guest of the launcher'
  },
  {
    name: 'guests write new documents',
    file: 'src/node/api/documents.ts',
    find: 'isGiven || node.guests.areThere ?',
    put: 'isGiven ?',
    test: 'node/policy/guests',
    title: 'a document of a mesh with guests is written by the machines of its person'
  },
  {
    name: 'a revoked guest still counts at the creation of documents',
    file: 'src/node/policy/guests.ts',
    find: 'revoked === null && this.has(node)',
    put: 'void revoked === undefined && this.has(node)',
    test: 'node/policy/guests',
    title: 'a list given at the creation counts also beside guests'
  }
]
