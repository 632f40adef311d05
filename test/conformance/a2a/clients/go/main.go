// Checks of the Go SDK as a client of A2A 0.3. Argument: the directory of the card's URL. Environment: A2A_TOKEN,
// A2A_HOOK. Prints one JSON line for each check: {"check", "ok", "why"}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"
)

type withToken struct {
	a2aclient.PassthroughInterceptor
}

func (withToken) Before(ctx context.Context, req *a2aclient.Request) (context.Context, error) {
	req.Meta["Authorization"] = []string{"Bearer " + os.Getenv("A2A_TOKEN")}
	return ctx, nil
}

func same(found, wanted any) {
	if !reflect.DeepEqual(found, wanted) {
		panic(fmt.Errorf("%v is not %v", found, wanted))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func fails(err, wanted error) {
	if !errors.Is(err, wanted) {
		panic(fmt.Errorf("%v is not %v", err, wanted))
	}
}

func says(text string, task a2a.TaskID) *a2a.MessageSendParams {
	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: text})
	message.TaskID = task
	return &a2a.MessageSendParams{Message: message}
}

func textOf(artifact *a2a.Artifact) string {
	part, _ := artifact.Parts[0].(a2a.TextPart)
	return part.Text
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	card := must(agentcard.DefaultResolver.Resolve(ctx, os.Args[1]))
	client := must(a2aclient.NewFromCard(ctx, card, a2aclient.WithInterceptors(withToken{})))
	task := func(text string, id a2a.TaskID) *a2a.Task {
		return must(client.SendMessage(ctx, says(text, id))).(*a2a.Task)
	}
	var done *a2a.Task

	check("card", func() {
		same(card.Skills[0].ID, "acts.do")
		same(must(client.GetAgentCard(ctx)).Name, card.Name)
	})
	check("send", func() {
		done = task("hello", "")
		same(done.Status.State, a2a.TaskStateCompleted)
		same(textOf(done.Artifacts[0]), "you said hello")
	})
	check("stream", func() {
		texts := []string{}
		var last a2a.TaskState
		for event, err := range client.SendStreamingMessage(ctx, says("chunks of words", "")) {
			switch one := must(event, err).(type) {
			case *a2a.TaskArtifactUpdateEvent:
				texts = append(texts, textOf(one.Artifact))
			case *a2a.TaskStatusUpdateEvent:
				last = one.Status.State
			}
		}
		same(texts, []string{"one ", "two ", "three"})
		same(last, a2a.TaskStateCompleted)
	})
	check("get", func() {
		same(must(client.GetTask(ctx, &a2a.TaskQueryParams{ID: done.ID})).Status.State, a2a.TaskStateCompleted)
	})
	check("cancel", func() {
		sent := says("hold on", "")
		blocking := false
		sent.Config = &a2a.MessageSendConfig{Blocking: &blocking}
		begun := must(client.SendMessage(ctx, sent)).(*a2a.Task)
		same(must(client.CancelTask(ctx, &a2a.TaskIDParams{ID: begun.ID})).Status.State, a2a.TaskStateCanceled)
	})
	check("turns", func() {
		asked := task("ask me", "")
		same(asked.Status.State, a2a.TaskStateInputRequired)
		again := task("more of it", asked.ID)
		same([]any{again.ID, again.Status.State}, []any{asked.ID, a2a.TaskStateInputRequired})
		last := task("finish", asked.ID)
		same([]any{last.ID, last.Status.State}, []any{asked.ID, a2a.TaskStateCompleted})
	})
	check("push", func() {
		hook := os.Getenv("A2A_HOOK")
		config := &a2a.TaskPushConfig{TaskID: done.ID, Config: a2a.PushConfig{ID: "mine", URL: hook}}
		same(must(client.SetTaskPushConfig(ctx, config)).Config.URL, hook)
		named := &a2a.GetTaskPushConfigParams{TaskID: done.ID, ConfigID: "mine"}
		same(must(client.GetTaskPushConfig(ctx, named)).Config.URL, hook)
		listing := &a2a.ListTaskPushConfigParams{TaskID: done.ID}
		same(len(must(client.ListTaskPushConfig(ctx, listing))), 1)
		must(0, client.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigParams{TaskID: done.ID, ConfigID: "mine"}))
		same(len(must(client.ListTaskPushConfig(ctx, listing))), 0)
	})
	check("errors", func() {
		_, err := client.GetTask(ctx, &a2a.TaskQueryParams{ID: "task_none"})
		fails(err, a2a.ErrTaskNotFound)
		_, err = client.CancelTask(ctx, &a2a.TaskIDParams{ID: done.ID})
		fails(err, a2a.ErrTaskNotCancelable)
	})
}

func check(name string, run func()) {
	result := map[string]any{"check": name, "ok": true}
	defer func() {
		if fault := recover(); fault != nil {
			result["ok"], result["why"] = false, fmt.Sprint(fault)
		}
		line, _ := json.Marshal(result)
		fmt.Println(string(line))
	}()
	run()
}
