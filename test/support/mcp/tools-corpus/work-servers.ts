/**
 * Tools of servers for software and office work, one a line: name, description and parameters. A parameter is its name,
 * `*` when it is required, its type when it is no text, and its description.
 */
export const WORK_SERVERS: Readonly<Record<string, string>> = {
  git: `
status | Shows the working tree status. | repo_path* Path of the repository.
diff_unstaged | Shows changes in the working directory that are not yet staged. | repo_path*; context_lines:integer Lines around each change.
diff_staged | Shows changes that are staged for the next commit. | repo_path*; context_lines:integer
diff | Shows differences between branches or commits. | repo_path*; target* Branch or commit to compare with.
commit | Records the staged changes in the repository. | repo_path*; message* Commit message.
add | Adds file contents to the staging area. | repo_path*; files*:string[] Paths of the files.
reset | Unstages all staged changes. | repo_path*
log | Shows the commit history, optionally of one path or between two dates. | repo_path*; max_count:integer; path Only commits that changed it.; since; until
create_branch | Creates a branch from a base branch. | repo_path*; branch_name*; base_branch
checkout | Switches to another branch. | repo_path*; branch_name*
show | Shows the contents of a commit. | repo_path*; revision* Commit hash, tag or branch.
blame | Shows for each line of a file the commit and author that last changed it. | repo_path*; file*; start_line:integer; end_line:integer
restore | Discards changes of files in the working tree and brings back their committed content. | repo_path*; files*:string[]
stash | Puts the uncommitted changes aside, or brings them back. | repo_path*; action*:push|pop|list; message
`,
  files: `
read_file | Reads the complete contents of a text file from disk. | path*; head:integer First lines only.; tail:integer Last lines only.
read_media_file | Reads an image or audio file and returns it as base64 data with its MIME type. | path*
read_multiple_files | Reads the contents of several files at once. | paths*:string[]
write_file | Creates a new file or overwrites an existing one with new content. | path*; content*
edit_file | Makes line-based edits to a text file and returns a diff. | path*; edits*:object[]; dryRun:boolean Preview the changes only.
create_directory | Creates a new directory or makes sure that it exists. | path*
list_directory | Lists files and directories at a path. | path*
list_directory_with_sizes | Lists files and directories at a path, including their sizes. | path*; sortBy:name|size
directory_tree | Gives a recursive tree of files and directories as JSON. | path*; excludePatterns:string[]
move_file | Moves or renames files and directories. | source*; destination*
search_files | Searches recursively for files and directories whose names match a pattern. | path*; pattern*; excludePatterns:string[]
get_file_info | Gives size, creation time, modification time, permissions and type of a file or directory. | path*
list_allowed_directories | Lists the directories that this server may access. |
delete_file | Deletes a file permanently. | path*; recursive:boolean Also a directory with everything in it.
`,
  forge: `
create_repository | Creates a new source code repository in your account or an organization. | name*; description; private:boolean; autoInit:boolean
fork_repository | Forks a repository to your account. | owner*; repo*; organization
search_repositories | Searches for repositories by name, topic or language. | query*; page:integer; perPage:integer
search_code | Searches for code across all repositories. | query*; sort; order:asc|desc; page:integer
search_users | Searches for user accounts. | query*; page:integer
get_file_contents | Gets the contents of a file or directory in a repository. | owner*; repo*; path*; ref Branch, tag or commit.
create_or_update_file | Creates or updates a single file in a repository. | owner*; repo*; path*; content*; message*; branch*; sha
push_files | Pushes several files to a repository in one commit. | owner*; repo*; branch*; files*:object[]; message*
delete_remote_file | Deletes a file from a repository. | owner*; repo*; path*; message*; branch*
list_branches | Lists the branches of a repository. | owner*; repo*; page:integer
list_commits | Lists the commits of a branch. | owner*; repo*; sha; author; page:integer
list_tags | Lists the tags of a repository. | owner*; repo*
create_release | Publishes a release of a repository with notes. | owner*; repo*; tag*; name; body; draft:boolean
get_latest_release | Gets the newest published release of a repository. | owner*; repo*
create_pull_request | Opens a pull request from a branch. | owner*; repo*; title*; head* Branch with the changes.; base* Branch to merge into.; body; draft:boolean
list_pull_requests | Lists pull requests of a repository. | owner*; repo*; state:open|closed|all; base; head
get_pull_request | Gets the details of a pull request. | owner*; repo*; number*:integer
get_pull_request_files | Lists the files that a pull request changes. | owner*; repo*; number*:integer
get_pull_request_status | Gets the combined status of all checks of a pull request. | owner*; repo*; number*:integer
merge_pull_request | Merges a pull request. | owner*; repo*; number*:integer; method:merge|squash|rebase
review_pull_request | Writes a review on a pull request: approve, request changes or comment. | owner*; repo*; number*:integer; event*:APPROVE|REQUEST_CHANGES|COMMENT; body*
request_reviewers | Asks people to review a pull request. | owner*; repo*; number*:integer; reviewers*:string[]
star_repository | Stars a repository. | owner*; repo*
list_notifications | Lists notifications of the signed-in user. | all:boolean; since
get_me | Gets the profile of the signed-in user. |
create_gist | Creates a snippet of code with a link to share. | files*:object; description; public:boolean
list_security_alerts | Lists open security alerts of dependencies in a repository. | owner*; repo*; severity
compare_commits | Compares two commits or branches of a repository. | owner*; repo*; base*; head*
`,
  issues: `
create_issue | Creates an issue in a project. | project*; title*; description; type:bug|task|story; priority; assignee; labels:string[]
get_issue | Gets all fields of an issue: status, assignee, reporter, comments and links. | key* For example WEB-42.
update_issue | Changes fields of an issue. | key*; fields*:object
delete_issue | Deletes an issue. | key*
search_issues | Finds issues by a query in the query language. | jql*; limit:integer; startAt:integer
assign_issue | Assigns an issue to a person. | key*; assignee*
transition_issue | Moves an issue to another status of the workflow. | key*; status*
list_transitions | Lists the statuses that an issue can move to. | key*
add_comment | Writes a comment on an issue. | key*; body*
list_comments | Lists the comments of an issue. | key*
link_issues | Links two issues, e.g. one blocks the other. | from*; to*; type*
log_work | Adds time spent to an issue. | key*; timeSpent* For example 2h 30m.; comment
add_watcher | Adds a person to the watchers of an issue. | key*; user*
list_projects | Lists the projects of the tracker. | query
list_sprints | Lists the sprints of a board. | board*:integer; state:active|future|closed
add_to_sprint | Moves issues into a sprint. | sprint*:integer; keys*:string[]
get_board | Gets a board and its columns. | board*:integer
attach_file_to_issue | Attaches a file to an issue. | key*; filename*; content*
list_fields | Lists the custom fields of the tracker. |
bulk_create_issues | Creates many issues at once. | issues*:object[]
`,
  postgres: `
query | Runs a read-only SQL query and returns its rows. | sql*; params:string[]
execute | Runs a SQL statement that changes data. | sql*; params:string[]
list_schemas | Lists the schemas of the database. |
list_tables | Lists the tables of a schema with their row counts. | schema
describe_table | Gives the columns, types, keys and indexes of a table. | schema; table*
explain_query | Gives the execution plan of a SQL query. | sql*; analyze:boolean
list_indexes | Lists the indexes of a table with their sizes and use. | table*
slow_queries | Lists the statements that took the most time. | limit:integer; minMs:number
active_connections | Lists the connections to the database and the statements that they run. |
cancel_backend | Cancels the running statement of a connection. | pid*:integer
vacuum_table | Cleans up dead rows of a table. | table*; full:boolean
dump_schema | Exports the schema of the database as SQL. | schema
`,
  containers: `
list_containers | Lists containers, running or all. | all:boolean; filter
run_container | Starts a new container of an image. | image*; name; ports:string[]; env:object; volumes:string[]; detach:boolean
start_container | Starts a stopped container. | container*
stop_container | Stops a running container. | container*; timeout:integer
restart_container | Restarts a container. | container*
remove_container | Removes a container. | container*; force:boolean
container_logs | Fetches the logs of a container. | container*; tail:integer; since
exec_container | Runs a command inside of a running container. | container*; command*:string[]
inspect_container | Gives the configuration and state of a container. | container*
container_stats | Gives processor, memory and network use of containers. | container
list_images | Lists the images on the machine. |
pull_image | Downloads an image from a registry. | image*
build_image | Builds an image from a Dockerfile. | context*; tag*; dockerfile
remove_image | Removes an image. | image*; force:boolean
tag_image | Gives an image another tag. | image*; tag*
list_volumes | Lists the volumes. |
create_network | Creates a network for containers. | name*; driver
prune | Removes stopped containers, unused networks and dangling images. | volumes:boolean
`,
  cluster: `
get_pods | Lists the pods of a namespace with status, restarts and age. | namespace; labelSelector
describe_pod | Describes a pod with its events. | namespace*; name*
pod_logs | Gets the logs of a pod. | namespace*; name*; container; tail:integer; previous:boolean
exec_pod | Runs a command in a container of a pod. | namespace*; name*; command*:string[]
delete_pod | Deletes a pod. | namespace*; name*
list_deployments | Lists the deployments of a namespace. | namespace
describe_deployment | Describes a deployment. | namespace*; name*
scale_deployment | Sets the number of replicas of a deployment. | namespace*; name*; replicas*:integer
rollout_restart | Restarts all pods of a deployment one after the other. | namespace*; name*
rollout_status | Shows the progress of a rollout. | namespace*; name*
rollout_undo | Rolls a deployment back to an earlier revision. | namespace*; name*; revision:integer
apply_manifest | Applies a YAML manifest to the cluster. | manifest*; dryRun:boolean
delete_resource | Deletes a resource of the cluster by kind and name. | kind*; name*; namespace
list_services | Lists the services of a namespace. | namespace
list_nodes | Lists the nodes of the cluster with capacity and conditions. |
drain_node | Moves all pods off a node for maintenance. | node*; force:boolean
list_events | Lists recent events of a namespace. | namespace; type
get_config_map | Reads a config map. | namespace*; name*
port_forward | Forwards a local port to a pod. | namespace*; name*; localPort*:integer; podPort*:integer
top_pods | Shows processor and memory use of pods. | namespace
`,
  ci: `
list_pipelines | Lists the pipelines of a project with their results. | project*; branch; status
get_pipeline | Gets a pipeline and the state of its jobs. | project*; id*:integer
trigger_pipeline | Starts a pipeline for a branch. | project*; branch*; variables:object
cancel_pipeline | Cancels a running pipeline. | project*; id*:integer
retry_job | Runs a failed job again. | project*; job*:integer
job_log | Gets the log of a build or test job, with its errors. | project*; job*:integer; tail:integer
list_artifacts | Lists the artifacts of a job. | project*; job*:integer
download_artifact | Downloads an artifact of a job. | project*; job*:integer; path*
deploy_release | Deploys a release to an environment. | project*; version*; environment*:staging|production
rollback_release | Puts the previous release back into an environment. | project*; environment*
list_environments | Lists the environments and the release that each runs. | project*
flaky_tests | Lists tests that fail now and then. | project*; days:integer
`,
  sheets: `
create_spreadsheet | Creates a new spreadsheet. | title*; folder
list_worksheets | Lists the worksheets of a spreadsheet. | spreadsheet*
read_range | Reads the values of a range of cells. | spreadsheet*; range* For example Sheet1!A1:C10.
write_range | Writes values into a range of cells. | spreadsheet*; range*; values*:any
append_rows | Adds rows at the end of a worksheet. | spreadsheet*; sheet*; rows*:any
delete_rows | Deletes rows of a worksheet. | spreadsheet*; sheet*; start*:integer; count*:integer
add_worksheet | Adds a worksheet to a spreadsheet. | spreadsheet*; title*
format_cells | Changes colours, fonts and number formats of cells. | spreadsheet*; range*; format*:object
sort_range | Sorts a range by a column. | spreadsheet*; range*; column*:integer; ascending:boolean
create_chart | Draws a chart of a range of cells. | spreadsheet*; range*; type*:bar|line|pie; title
find_replace | Finds and replaces text in cells. | spreadsheet*; find*; replacement*
share_spreadsheet | Gives a person access to a spreadsheet. | spreadsheet*; email*; role*:reader|writer
export_csv | Exports a worksheet as CSV. | spreadsheet*; sheet*
create_pivot_table | Summarises a range in a pivot table. | spreadsheet*; range*; rows*:string[]; values*:string[]
`,
  wiki: `
search_pages | Searches the pages of the wiki by text. | query*; space; limit:integer
get_page | Gets the content of a wiki page. | id*
create_page | Creates a wiki page. | space*; title*; body*; parent
update_page | Changes the title or content of a wiki page. | id*; title; body; version*:integer
delete_page | Deletes a wiki page. | id*
move_page | Moves a wiki page below another one. | id*; parent*
page_history | Lists the versions of a wiki page and their authors. | id*
list_spaces | Lists the spaces of the wiki. |
page_children | Lists the pages below a page. | id*
comment_page | Writes a comment on a wiki page. | id*; body*
`
}
