import test, { type Assert } from 'brittle'
import { EXIT_CODES } from '../../src/cli/exit-codes.js'
import { COMMANDS } from '../../src/cli/terminal/table.js'
import { ERROR_CODES, type ErrorCode } from '../../src/kit/errors.js'

const TOLD: Readonly<Record<number, readonly ErrorCode[]>> = {
  1: ['TASK_FAILED', 'INVALID_OUTPUT', 'PAYLOAD_TOO_LARGE', 'CANCELED'],
  2: ['USAGE', 'INVALID_INPUT'],
  3: ['NODE_NOT_RUNNING'],
  4: ['PEER_NOT_FOUND', 'AGENT_NOT_FOUND', 'CAPABILITY_NOT_FOUND', 'NO_CAPABLE_AGENT', 'AMBIGUOUS_NAME'],
  5: [
    'TIER_VIOLATION',
    'SANDBOX_VIOLATION',
    'ESCALATION_REQUIRED',
    'POLICY_DENIED',
    'APPROVAL_TIMEOUT',
    'INVITE_USED',
    'INVITE_EXPIRED',
    'INVITE_REVOKED',
    'INVITE_INVALID',
    'REVOKED'
  ],
  6: [
    'TIMEOUT',
    'PROPOSAL_TIMEOUT',
    'NO_ADMIN_ONLINE',
    'NETWORK_OFFLINE',
    'BOOTSTRAP_OFFLINE',
    'WEBSOCKET_OFFLINE',
    'BOOTSTRAP_MISSING',
    'LAN_OFFLINE',
    'UDP_BLOCKED',
    'NAT_RANDOM',
    'PUNCH_FAILED'
  ],
  7: ['PEER_OFFLINE', 'DELIVERY_FAILED', 'CHANNEL_CLOSED'],
  9: ['ALREADY_RUNNING', 'ALREADY_IN_MESH', 'STORE_LOCKED', 'PORT_IN_USE', 'FILE_EXISTS', 'CONFLICT'],
  70: ['INTERNAL'],
  78: ['NO_PERMISSION', 'DISK_FULL', 'STORE_DAMAGED', 'CONFIG_INVALID', 'PATH_TOO_LONG']
}

test('error codes have the exit codes that scripts rely on', (t: Assert) => {
  for (const [exit, codes] of Object.entries(TOLD)) for (const code of codes) t.is(EXIT_CODES[code], Number(exit), code)
})

test('every error code has an exit code, and none is success', (t: Assert) => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) t.ok(EXIT_CODES[code] > 0, code)
})

test('the next step of every error code names a command that exists', (t: Assert) => {
  const names = new Set([...COMMANDS.map((one) => one.name), '--help', '--version'])
  for (const [code, { next }] of Object.entries(ERROR_CODES)) {
    for (const step of next) {
      const [program, word = ''] = step.split(' ')
      if (program === 'a2a-node') t.ok(names.has(word), `${code}: ${step}`)
    }
  }
})
