import type { ImportedServerInfo, ImportedTools } from '../ports/imported-tools.js'

/** Imported MCP servers and A2A agents as one list. What an MCP client names by `named` is a server of MCP alone. */
export function joinTools(servers: ImportedTools, agents: ImportedTools): ImportedTools {
  return {
    list: () => [...servers.list(), ...agents.list()],
    named: (text) => servers.named(text),
    async refresh(name, accept) {
      if (name === null) return (await Promise.all([servers.refresh(null, accept), agents.refresh(null, accept)])).flat()
      const isAgent = servers.named(name) === null && agents.named(name) !== null
      const infos: readonly ImportedServerInfo[] = await (isAgent ? agents : servers).refresh(name, accept)
      return infos
    },
    problems: () => [...servers.problems(), ...agents.problems()]
  }
}
