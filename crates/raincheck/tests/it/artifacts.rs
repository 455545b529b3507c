//! An embedder's artifacts, fetched over the listener that opens with the first of them.

use raincheck::core::content::Json;
use raincheck::core::tool::ToolSpec;
use raincheck::process::{CommandTool, Commands};
use raincheck::{LoopbackConfig, Raincheck};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::{call, with_client};

/// Fetches a link and returns the whole answer.
async fn get(url: &str) -> String {
    let (address, target) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a link");
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let request = format!("GET /{target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn an_artifact_is_fetched_as_long_as_the_server_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Json::parse(r#"{"type":"object"}"#).expect("JSON");
    let leave = "printf painted > \"$RAINCHECK_ARTIFACTS_DIR/picture\"";
    let argv = ["sh", "-c", leave].map(str::to_owned).to_vec();
    let paint = CommandTool::new(ToolSpec::new("paint", "Paints", schema), argv, folder.path());
    let tasks = folder.path().join("tasks");
    let commands = Commands::new(&tasks, vec![paint]).expect("a place");
    let server = Raincheck::builder().tools(commands).listening(LoopbackConfig::new());
    let url = with_client(server, async |client| {
        call(client, "paint", json!({})).await;
        let (listed, _) = call(client, "list_tasks", json!({})).await;
        let task = json!({ "task_id": listed["tasks"][0]["task_id"] });
        let (ended, _) = call(client, "get_task_result", task).await;
        let artifact = &ended["artifacts"][0];
        let url = artifact["download_url"].as_str().expect("a link").to_owned();
        let answer = get(&url).await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("painted"),
            "[ART-2] {answer}"
        );
        let id = artifact["artifact_id"].as_str().expect("an id");
        let file = tasks.join(task_folder(&ended)).join("artifacts").join(id);
        std::fs::remove_file(&file).expect("the artifact");
        std::fs::write(&file, "another picture").expect("written");
        let answer = get(&url).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "[ART-1] another file: {answer}");
        url
    })
    .await;
    let (address, _) = url["http://".len()..].split_once('/').expect("an address");
    assert!(TcpStream::connect(address).await.is_err(), "nothing listens after the end");
}

fn task_folder(ended: &serde_json::Value) -> &str {
    ended["task_id"].as_str().expect("an id")
}
