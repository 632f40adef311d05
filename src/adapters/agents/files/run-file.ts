import path from 'node:path'
import { type CapabilityDescriptor, defaultCapability } from '../../../domain/card/card.js'
import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { faultText, givenText, shapeText } from '../../../kit/schema/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { shellWord } from '../../../kit/text.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { AgentFile } from './agent-file.js'
import { toAgentJson } from '../schemas/agent-json.js'
import type { AgentFormat } from './agent-file-schema.js'
import { buildAgent } from './build-agent.js'
import { createSchemaCompiler } from '../schemas/compile-schema.js'
import type { Environment } from './environment.js'
import { failure } from './hosted-agent.js'
import { ProcessGroups } from '../process/process-groups.js'
import type { SharedDeps } from '../runtimes.js'
import { readAgentFile } from './read-agent-file.js'
import type { AgentLog } from './runtime-type.js'

/** Options of {@link runAgentFile}. */
export interface RunFileOptions extends SharedDeps {
  /** A relative path is taken from the current directory. */
  readonly file: string
  readonly input: unknown
  /** Default: the one marked `default`, else the first of the file. */
  readonly capability?: string
  /** The goal, for people; default ''. */
  readonly description?: string
  /** Where process groups are recorded, `<home>/run`. */
  readonly runDir: string
  readonly clock: Clock
  /** Ends the run. */
  readonly signal?: AbortSignalLike
  readonly onProgress?: (data: unknown) => void
  readonly log?: AgentLog
  /** The node's own environment. Default: this process's. */
  readonly env?: Environment
  /** Default: the format with every runtime. */
  readonly format?: AgentFormat
}

/** How the run ended. */
export interface RunFileReport {
  readonly agent: string
  readonly capability: string
  readonly outcome: AgentOutcome
}

/**
 * Runs one capability of an agent file once, in this process and without a node; input and output are checked against
 * the capability's schemas as a node does.
 * @throws NodeError AGENT_FILE_INVALID (data: {faults}), CAPABILITY_NOT_FOUND, INVALID_INPUT (data: {faults, expected,
 * given})
 */
export async function runAgentFile(options: RunFileOptions): Promise<RunFileReport> {
  const compileSchema = createSchemaCompiler()
  const { format } = options
  const agentFile = await readAgentFile(
    path.resolve(options.file),
    compileSchema,
    format === undefined ? {} : { format }
  )
  if (!agentFile.ok) {
    const [first] = agentFile.faults
    const where = first?.line === null || first === undefined ? options.file : `${options.file}:${first.line}`
    throw new NodeError('AGENT_FILE_INVALID', `${where}: ${first?.reason ?? 'not an agent file'}`, {
      data: { faults: agentFile.faults },
      next: [`a2a-node agents check ${shellWord(options.file)}`]
    })
  }
  const capability = findCapability(agentFile, options.capability)
  const input = toAgentJson(options.input)
  const faults = compileSchema(capability.inputSchema)(input)
  if (faults.length > 0)
    throw new NodeError('INVALID_INPUT', `the input does not fit ${capability.id}: ${faultText(faults)}`, {
      data: { faults, expected: shapeText(capability.inputSchema), given: givenText(input) },
      next: [`a2a-node agents run ${shellWord(options.file)} '<json as expected>'`]
    })
  const task: AgentTask = {
    taskId: 'task_local',
    requestId: 'req_local',
    attempt: 1,
    capability: capability.id,
    description: options.description ?? '',
    swarm: null,
    input
  }
  const outcome = checkOutput(await runOnce(agentFile, task, options), capability, compileSchema)
  return { agent: agentFile.definition.id, capability: capability.id, outcome }
}

function findCapability({ definition }: AgentFile, wanted: string | undefined): CapabilityDescriptor {
  const found =
    wanted === undefined ? defaultCapability(definition) : definition.capabilities.find((one) => one.id === wanted)
  if (found !== null && found !== undefined) return found
  const known = definition.capabilities.map((one) => one.id)
  throw new NodeError(
    'CAPABILITY_NOT_FOUND',
    `the agent ${definition.id} has no capability ${wanted}; it has ${known.join(', ')}`,
    {
      data: { candidates: known },
      next: []
    }
  )
}

async function runOnce(
  agentFile: AgentFile,
  task: AgentTask,
  { runDir, signal, onProgress, format, env = process.env, log = () => {}, ...shared }: RunFileOptions
): Promise<AgentOutcome> {
  const groups = new ProcessGroups(runDir)
  const agent = buildAgent(agentFile, { ...shared, groups, env, log }, format)
  try {
    return await agent.run(task, {
      signal: signal ?? new AbortController().signal,
      progress: (data) => onProgress?.(data)
    })
  } finally {
    await agent.close()
    await groups.close()
  }
}

function checkOutput(
  outcome: AgentOutcome,
  capability: CapabilityDescriptor,
  compileSchema: CompileSchema
): AgentOutcome {
  if (!outcome.ok) return outcome
  const faults = compileSchema(capability.outputSchema)(outcome.result)
  return faults.length === 0
    ? outcome
    : failure('INVALID_OUTPUT', `the result does not fit ${capability.id}: ${faultText(faults)}`)
}
