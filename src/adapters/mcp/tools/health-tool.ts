import type { ResourceManager, ResourceTelemetry } from '../resources/resource-limits.js'
import type { ToolSchema, RegisteredTool, ToolDefinition, ToolHandler } from '../server/tool.js'

/** Arguments of the health tool: none (spec mcp-runtime, ToolType Canonical Schemas). */
export const HEALTH_SCHEMA: ToolSchema = { type: 'object', properties: {}, additionalProperties: false }

/** Dependencies of {@link healthTool}. */
export interface HealthDeps {
  readonly name: string
  readonly version: string
  readonly limits: ResourceManager
  readonly settings: {
    readonly defaultTimeoutMs: number
    readonly maxConcurrentExecutions: number
    readonly maxPayloadBytes: number
    readonly maxStateBytes: number
  }
}

/** Answer of the health tool (spec mcp-runtime, HealthResponse). */
export interface HealthResponse {
  readonly server: { readonly name: string; readonly version: string }
  readonly config: {
    readonly toolTimeoutMs: number
    readonly maxConcurrentExecutions: number
    readonly maxPayloadBytes: number
    readonly maxStateBytes: number
  }
  readonly resources: ResourceTelemetry
  readonly status: 'healthy' | 'degraded' | 'unhealthy'
}

/** How a health tool of any name is registered: it measures slots, so it takes none. */
export const HEALTH_OPTIONS: Pick<RegisteredTool, 'needsSlot'> = { needsSlot: false }

/** The health tool, to register. It answers also when all slots are taken, and does not count itself. */
export function healthTool(deps: HealthDeps): Pick<RegisteredTool, 'definition' | 'handler'> {
  const definition: ToolDefinition = {
    name: 'health',
    description:
      'Tells how busy this node is: slots, memory, delay of the event loop, and whether it is healthy, degraded or unhealthy.',
    inputSchema: HEALTH_SCHEMA,
    annotations: { readOnlyHint: true, idempotentHint: true }
  }
  return { definition, handler: healthHandler(deps) }
}

/** The handler of a health tool of any name. */
export function healthHandler({ name, version, limits, settings }: HealthDeps): ToolHandler {
  const { defaultTimeoutMs, ...config } = settings
  return () => {
    const response: HealthResponse = {
      server: { name, version },
      config: { toolTimeoutMs: defaultTimeoutMs, ...config },
      resources: limits.getTelemetry(),
      status: limits.health()
    }
    return Promise.resolve(response)
  }
}
