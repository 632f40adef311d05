// Checks of the Java SDK as a client. Arguments: the directory of the card's URL, the binding. Environment: A2A_TOKEN,
// A2A_HOOK. Prints one JSON line for each check: {"check", "ok", "why"}.

import com.google.gson.Gson;
import io.a2a.client.ClientEvent;
import io.a2a.client.TaskEvent;
import io.a2a.client.TaskUpdateEvent;
import io.a2a.client.config.ClientConfig;
import io.a2a.client.http.A2ACardResolver;
import io.a2a.client.http.A2AHttpClientFactory;
import io.a2a.client.transport.jsonrpc.JSONRPCTransport;
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfigBuilder;
import io.a2a.client.transport.rest.RestTransport;
import io.a2a.client.transport.rest.RestTransportConfigBuilder;
import io.a2a.client.transport.spi.interceptors.ClientCallContext;
import io.a2a.spec.AgentCard;
import io.a2a.spec.Artifact;
import io.a2a.spec.DeleteTaskPushNotificationConfigParams;
import io.a2a.spec.GetTaskPushNotificationConfigParams;
import io.a2a.spec.ListTaskPushNotificationConfigParams;
import io.a2a.spec.ListTasksParams;
import io.a2a.spec.Message;
import io.a2a.spec.MessageSendParams;
import io.a2a.spec.PushNotificationConfig;
import io.a2a.spec.Task;
import io.a2a.spec.TaskArtifactUpdateEvent;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskPushNotificationConfig;
import io.a2a.spec.TaskQueryParams;
import io.a2a.spec.TaskState;
import io.a2a.spec.TextPart;
import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

public class Client {
  interface Check {
    void run() throws Exception;
  }

  static final ClientCallContext CONTEXT =
      new ClientCallContext(Map.of(), Map.of("Authorization", "Bearer " + System.getenv("A2A_TOKEN")));
  static AgentCard card;
  static io.a2a.client.Client plain;
  static io.a2a.client.Client streams;
  static Task done;

  public static void main(String[] args) throws Exception {
    // The resolver drops the path of the URL, so the path of the card is named.
    String path = URI.create(args[0]).getPath() + "/.well-known/agent-card.json";
    // Without the version the card is of 0.3 and 1.0 at once.
    Map<String, String> headers = Map.of("A2A-Version", "1.0");
    card = new A2ACardResolver(A2AHttpClientFactory.create(), args[0], null, path, headers).getAgentCard();
    plain = client(args[1], false);
    streams = client(args[1], true);

    check("card", () -> {
      same(card.skills().get(0).id(), "acts.do");
      same(new A2ACardResolver(args[0]).getAgentCard().name(), card.name());
      same(plain.getExtendedAgentCard(CONTEXT).name(), card.name());
    });
    check("send", () -> {
      done = task("hello", null);
      same(done.status().state(), TaskState.TASK_STATE_COMPLETED);
      same(textOf(done.artifacts().get(0)), "you said hello");
    });
    check("stream", () -> {
      LinkedBlockingQueue<Object> events = new LinkedBlockingQueue<>();
      BiConsumer<ClientEvent, AgentCard> consumer = (event, from) -> events.add(event);
      streams.sendMessage(says("chunks of words", null), List.of(consumer), events::add, CONTEXT);
      List<String> texts = new ArrayList<>();
      TaskState state = null;
      while (state == null || !state.isFinal()) {
        Object event = events.poll(15, TimeUnit.SECONDS);
        if (event == null) throw new IllegalStateException("the stream has no final state");
        if (event instanceof Throwable fault) throw new IllegalStateException(fault);
        if (event instanceof TaskUpdateEvent update) {
          if (update.getUpdateEvent() instanceof TaskArtifactUpdateEvent one) texts.add(textOf(one.artifact()));
          state = update.getTask().status().state();
        }
      }
      same(texts, List.of("one ", "two ", "three"));
      same(state, TaskState.TASK_STATE_COMPLETED);
    });
    check("get", () ->
        same(plain.getTask(new TaskQueryParams(done.id()), CONTEXT).status().state(), TaskState.TASK_STATE_COMPLETED));
    check("cancel", () -> {
      // This SDK still says `blocking`, which 1.0 does not have: only a stream tells the task before it ends.
      LinkedBlockingQueue<Object> events = new LinkedBlockingQueue<>();
      BiConsumer<ClientEvent, AgentCard> consumer = (event, from) -> events.add(event);
      streams.sendMessage(says("hold on", null), List.of(consumer), events::add, CONTEXT);
      if (!(events.poll(15, TimeUnit.SECONDS) instanceof TaskEvent begun)) throw new IllegalStateException("no task");
      Task canceled = plain.cancelTask(new TaskIdParams(begun.getTask().id()), CONTEXT);
      same(canceled.status().state(), TaskState.TASK_STATE_CANCELED);
    });
    check("list", () -> {
      ListTasksParams params = ListTasksParams.builder().contextId(done.contextId()).build();
      same(plain.listTasks(params, CONTEXT).tasks().stream().map(Task::id).toList(), List.of(done.id()));
    });
    check("turns", () -> {
      Task asked = task("ask me", null);
      same(asked.status().state(), TaskState.TASK_STATE_INPUT_REQUIRED);
      Task again = task("more of it", asked);
      same(List.of(again.id(), again.status().state()), List.of(asked.id(), TaskState.TASK_STATE_INPUT_REQUIRED));
      Task last = task("finish", asked);
      same(List.of(last.id(), last.status().state()), List.of(asked.id(), TaskState.TASK_STATE_COMPLETED));
    });
    check("push", () -> {
      String hook = System.getenv("A2A_HOOK");
      PushNotificationConfig config = PushNotificationConfig.builder().id("mine").url(hook).build();
      TaskPushNotificationConfig wanted = new TaskPushNotificationConfig(done.id(), config, "");
      same(plain.createTaskPushNotificationConfiguration(wanted, CONTEXT).config().url(), hook);
      GetTaskPushNotificationConfigParams named = new GetTaskPushNotificationConfigParams(done.id(), "mine");
      same(plain.getTaskPushNotificationConfiguration(named, CONTEXT).config().url(), hook);
      ListTaskPushNotificationConfigParams listing = new ListTaskPushNotificationConfigParams(done.id());
      same(plain.listTaskPushNotificationConfigurations(listing, CONTEXT).size(), 1);
      plain.deleteTaskPushNotificationConfigurations(
          new DeleteTaskPushNotificationConfigParams(done.id(), "mine"), CONTEXT);
      same(plain.listTaskPushNotificationConfigurations(listing, CONTEXT).size(), 0);
    });
    check("errors", () -> {
      fails("TaskNotFoundError", () -> plain.getTask(new TaskQueryParams("task_none"), CONTEXT));
      fails("TaskNotCancelableError", () -> plain.cancelTask(new TaskIdParams(done.id()), CONTEXT));
    });
    System.exit(0);
  }

  static io.a2a.client.Client client(String binding, boolean isStreaming) throws Exception {
    ClientConfig config = ClientConfig.builder().setStreaming(isStreaming).setUseClientPreference(true).build();
    var builder = io.a2a.client.Client.builder(card).clientConfig(config);
    return binding.equals("JSONRPC")
        ? builder.withTransport(JSONRPCTransport.class, new JSONRPCTransportConfigBuilder()).build()
        : builder.withTransport(RestTransport.class, new RestTransportConfigBuilder()).build();
  }

  static MessageSendParams says(String text, Task task) {
    Message.Builder message =
        Message.builder()
            .role(Message.Role.ROLE_USER)
            .messageId(UUID.randomUUID().toString())
            .parts(new TextPart(text));
    if (task != null) message.taskId(task.id()).contextId(task.contextId());
    return MessageSendParams.builder().message(message.build()).build();
  }

  static Task task(String text, Task task) throws Exception {
    LinkedBlockingQueue<Object> events = new LinkedBlockingQueue<>();
    BiConsumer<ClientEvent, AgentCard> consumer = (event, from) -> events.add(event);
    plain.sendMessage(says(text, task), List.of(consumer), events::add, CONTEXT);
    Object event = events.poll(15, TimeUnit.SECONDS);
    if (event instanceof TaskEvent one) return one.getTask();
    throw new IllegalStateException("no task: " + event);
  }

  static String textOf(Artifact artifact) {
    return ((TextPart) artifact.parts().get(0)).text();
  }

  static void same(Object found, Object wanted) {
    if (!Objects.equals(found, wanted)) throw new IllegalStateException(found + " is not " + wanted);
  }

  static void fails(String kind, Check call) {
    try {
      call.run();
    } catch (Exception fault) {
      for (Throwable one = fault; one != null; one = one.getCause())
        if (one.getClass().getSimpleName().equals(kind)) return;
      throw new IllegalStateException(fault + " is no " + kind, fault);
    }
    throw new IllegalStateException("no " + kind);
  }

  static void check(String name, Check run) {
    Map<String, Object> result = new LinkedHashMap<>(Map.of("check", name));
    try {
      run.run();
      result.put("ok", true);
    } catch (Throwable fault) {
      result.put("ok", false);
      result.put("why", String.valueOf(fault));
    }
    System.out.println(new Gson().toJson(result));
  }
}
