import os from 'node:os'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'

/** Capabilities of the starter agent `host`. */
export const HOST_CAPABILITIES: readonly CapabilityDescriptor[] = [
  {
    id: 'host.report',
    name: 'Host report',
    description: 'Tells the operating system, cores, memory and load of the machine that the node runs on.',
    idempotent: true,
    sideEffect: 'read',
    tags: ['host'],
    inputSchema: { type: 'object' },
    outputSchema: {
      type: 'object',
      required: ['os', 'cores', 'memory', 'load'],
      properties: {
        os: {
          type: 'object',
          required: ['platform', 'release', 'arch'],
          properties: { platform: { type: 'string' }, release: { type: 'string' }, arch: { type: 'string' } }
        },
        cores: { type: 'integer', minimum: 0 },
        memory: {
          type: 'object',
          required: ['totalBytes', 'freeBytes'],
          properties: { totalBytes: { type: 'integer', minimum: 0 }, freeBytes: { type: 'integer', minimum: 0 } }
        },
        load: {
          type: 'array',
          description: 'Runnable processes, averages of 1, 5 and 15 minutes.',
          items: { type: 'number' },
          minItems: 3,
          maxItems: 3
        }
      }
    }
  }
]

/** `host.report`: read from the operating system at each call. */
export function hostReport(): AgentOutcome {
  return {
    ok: true,
    result: {
      os: { platform: os.platform(), release: os.release(), arch: os.arch() },
      cores: os.cpus().length,
      memory: { totalBytes: os.totalmem(), freeBytes: os.freemem() },
      load: os.loadavg()
    }
  }
}
