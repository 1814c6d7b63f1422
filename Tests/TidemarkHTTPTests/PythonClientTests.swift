import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkHTTP
@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// `Tools/sync-client` was written from WireProtocol.md, so where it and a store do not come
/// together, one of the three is wrong.
@Suite(
  "The client in Python", .enabled(if: PythonClient.canRun, "there is no python3"),
  .timeLimit(.minutes(20)))
struct PythonClientTests {
  /// The fate of a push on its way.
  private enum Fate { case arrives, requestLost, answerLost }

  private let memory: MemoryPeer
  private let server: SocketServer
  /// The fates of the next pushes, the next one first.
  private let fates = Lock<[Fate]>([])
  /// The reach of its token.
  private let access = Lock(SyncAccess.everything)
  private var url: String { "\(server.url)/notes" }

  init() throws {
    let validator = SyncValidator { change, _ in
      change.content.value == Array("bad".utf8)
        ? SyncRejection(code: "invalid", message: "it is\nbad") : nil
    }
    let memory = try MemoryPeer(options: SyncHandler.Options(validators: [validator]))
    self.memory = memory
    let access = access
    var routes = SyncRoutes(memory.handler)
    routes.access = { access.withLock { $0 } }
    server = try SocketServer { [fates, routes] request, connection in
      guard request.path.hasSuffix("/push") else { return routes.serve(request, connection) }
      switch fates.withLock({ $0.isEmpty ? .arrives : $0.removeFirst() }) {
      case .arrives: return routes.serve(request, connection)
      case .requestLost: return false
      case .answerLost:
        guard case .pushRequest(let push)? = try? WireCoder().decodeJSON(request.body) else {
          return false
        }
        _ = try? memory.handler.push(push)
        return false
      }
    }
  }

  private func newStore() throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: MemoryFileSystem())))
  }

  private func text(_ store: Store, _ key: String) throws -> String? {
    try store.value(forKey: key).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The batches that were sent, in their order.
  private func batches() throws -> [PushRequest] {
    try server.requests.filter { $0.path.hasSuffix("/push") }.compactMap {
      guard case .pushRequest(let push) = try WireCoder().decodeJSON($0.body) else { return nil }
      return push
    }
  }

  @Test("it and a store take each other's attachments, and are equal by one comparison")
  func attachments() async throws {
    let store = try newStore()
    let replicator = try store.replicator(named: "server", peer: try HTTPPeer(url))
    var random = SeededGenerator(seed: 3)
    let (film, photo) = (random.bytes(1_200_000), random.bytes(70_000))
    let staged = try await store.attach(film)
    try await store.put("film", "1", options: PutOptions(attachment: staged))
    _ = try await replicator.syncOnce()

    let client = try await PythonClient(of: url)
    try client.write(photo, to: "photo.jpg")
    #expect(try await client.run("pull").output.hasPrefix("pulled 1, "))
    try await client.run("put", "photo", "2", "--attach", "photo.jpg")
    #expect(try await client.run("push").output == "pushed 1, 1 applied")
    #expect(try await client.run("compare").output == "equal, 1 comparison")
    #expect(try await client.run("fetch", "film", "dunes.mp4").status == 0)
    #expect(try client.read("dunes.mp4") == film)

    _ = try await replicator.syncOnce()
    let content = try await replicator.fetchAttachment(forKey: "photo")
    #expect(try content?.read(0..<photo.count) == photo)
    // An attachment that is gone before it was sent waits for somebody.
    try client.write(film + [1], to: "other.mp4")
    try await client.run("put", "other", "3", "--attach", "other.mp4")
    try client.write([], to: "other.mp4")
    #expect(try await client.run("push").output == "pushed 0")
    #expect(try await client.run("status").output.contains("another file"))
  }

  @Test("it and a store take each other's changes, and are equal by one comparison")
  func together() async throws {
    let store = try newStore()
    let peer = try HTTPPeer(url)
    let replicator = try store.replicator(named: "server", peer: peer)
    for number in 0..<600 { try await store.put("key/\(number)", "value \(number)") }
    let raw: [UInt8] = [0xff, 0, 0x22]
    try await store.put(Key(raw), Key(raw), labels: ["red", EntryLabel([0x80])])
    _ = try await replicator.syncOnce()

    let client = try await PythonClient(of: url)
    try await client.run("put", "note/1", "Milch für\nmorgen", "--label", "später", "--label", "a")
    try await client.run("put", "note/2", "gone")
    #expect(try await client.run("push").output == "pushed 2, 2 applied")
    // More than 16 keys make the client look into the parts.
    let before = try await client.run("compare")
    #expect(before.status == 2)
    #expect(before.output.split(separator: "\n").count { $0.hasPrefix("+ ") } == 601)
    #expect(try await client.run("pull").output.hasPrefix("pulled 601, "))
    #expect(try await client.run("compare").output == "equal, 1 comparison")
    #expect(try await client.run("get", "key/599").output == "value 599")
    try await client.run("delete", "note/2")
    try await client.run("delete", "key/7")
    #expect(try await client.run("push").output == "pushed 2, 2 applied")

    _ = try await replicator.syncOnce()
    #expect(try text(store, "note/1") == "Milch für\nmorgen")
    #expect(try text(store, "note/2") == nil)
    #expect(try text(store, "key/7") == nil)
    try await store.put("note/1", "Brot")
    try await store.delete("key/8")
    _ = try await replicator.syncOnce()
    let between = try await client.run("compare")
    #expect(between.output.hasPrefix("- \"key/8\"\n* \"note/1\"\ndifferent, "))
    #expect(try await client.run("pull").output.hasPrefix("pulled 2, "))
    #expect(try await client.run("compare").output == "equal, 1 comparison")
    #expect(try await client.run("pull").output.hasPrefix("pulled 0, "))
    #expect(try await client.run("get", "note/1").output == "Brot")
    #expect(try await client.run("get", "key/8").status == 1)

    let result = try await store.difference(from: peer)
    #expect(result.isEqual && result.comparisons == 1)
    #expect(
      try await client.run("list").output.contains(
        #"{"key_base64": "/wAi", "value_base64": "/wAi", "labels": ["red"], "#
          + #""labels_base64": ["gA=="]}"#))
  }

  @Test("a batch whose outcome is unknown is sent again as it was, and counts once")
  func unknownOutcome() async throws {
    let client = try await PythonClient(of: url)
    fates.withLock { $0 = [.requestLost, .answerLost] }
    try await client.run("put", "a", "1")
    let lost = try await client.run("--attempts", "1", "push")
    #expect(lost.status == 69 && lost.talk.count == 1)
    #expect(try await client.run("status").output.hasPrefix("0 pending, 1 in flight, "))
    // Made while the first one is under way: it is another batch.
    try await client.run("put", "a", "2")
    // The next process hears nothing at first, and sends once more by itself.
    #expect(try await client.run("push").output == "pushed 2, 2 applied")
    let sent = try batches()
    #expect(sent.map(\.number) == [1, 1, 1, 2])
    #expect(sent[0] == sent[1] && sent[1] == sent[2])
    #expect(sent[0].batchID != sent[3].batchID)
    let reader = ReplicaID(text: "00112233445566778899aabbccddeeff")
    let feed = try memory.handler.pull(
      PullRequest(replica: reader, after: .beginning, everyVersion: true))
    #expect(feed.entries.map { String(decoding: $0.content.value, as: UTF8.self) } == ["1", "2"])

    // The process ends without having heard, and the next one hears from the hello.
    fates.withLock { $0 = [.answerLost] }
    try await client.run("put", "b", "3")
    #expect(try await client.run("--attempts", "1", "push").status == 69)
    #expect(try await client.run("push").output == "pushed 1, 1 applied")
    #expect(try batches().map(\.number) == [1, 1, 1, 2, 3])
    #expect(try await client.run("compare").output == "equal, 1 comparison")
  }

  @Test("an edit made while its predecessor was under way stands upon what that has met")
  func followers() async throws {
    let store = try newStore()
    let replicator = try store.replicator(named: "server", peer: try HTTPPeer(url))
    try await store.put("k", "same")
    _ = try await replicator.syncOnce()
    let client = try await PythonClient(of: url)
    try await client.run("put", "k", "same")
    fates.withLock { $0 = [.requestLost] }
    #expect(try await client.run("--attempts", "1", "push").status == 69)
    try await client.run("put", "k", "next")
    #expect(try await client.run("push").output == "pushed 2, 1 applied, 1 duplicate")
    _ = try await replicator.syncOnce()
    #expect(try text(store, "k") == "next")
  }

  @Test("where both have written the user decides, also when the other side was pulled meanwhile")
  func conflict() async throws {
    let store = try newStore()
    let replicator = try store.replicator(named: "server", peer: try HTTPPeer(url))
    try await store.put("k", "base")
    _ = try await replicator.syncOnce()
    let client = try await PythonClient(of: url)
    try await client.run("pull")
    for (number, side) in ["--mine", "--theirs"].enumerated() {
      try await client.run("put", "k", "mine \(number)")
      try await store.put("k", "theirs \(number)")
      _ = try await replicator.syncOnce()
      #expect(try await client.run("pull").output.hasPrefix("pulled 1, "))
      let pushed = try await client.run("push")
      #expect(pushed.status == 2 && pushed.output == "pushed 1, 1 conflict")
      #expect(pushed.talk == [#""k": conflict: the server has something else"#])
      #expect(try await client.run("get", "k").output == "mine \(number)")
      #expect(try await client.run("get", "k", "--remote").output == "theirs \(number)")
      #expect(try await client.run("push").output == "pushed 0")
      try await client.run("resolve", "k", side)
      #expect(try await client.run("push").status == 0)
      _ = try await replicator.syncOnce()
      let expected = side == "--mine" ? "mine \(number)" : "theirs \(number)"
      #expect(try await client.run("get", "k").output == expected)
      #expect(try text(store, "k") == expected)
    }
    #expect(try await client.run("compare").output == "equal, 1 comparison")
  }

  @Test("a late pull does not undo what a verdict has told already")
  func stale() async throws {
    let store = try newStore()
    let replicator = try store.replicator(named: "server", peer: try HTTPPeer(url))
    try await store.put("deleted", "theirs")
    try await store.put("there", "theirs")
    _ = try await replicator.syncOnce()
    try await store.delete("deleted")
    _ = try await replicator.syncOnce()
    let client = try await PythonClient(of: url)
    try await client.run("put", "deleted", "mine")
    try await client.run("put", "there", "mine")
    #expect(try await client.run("push").output == "pushed 2, 1 applied, 1 conflict")
    try await client.run("resolve", "there", "--mine")
    try await client.run("push")
    try await client.run("delete", "there")
    try await client.run("push")
    // The feed has everything that the others did before that.
    #expect(try await client.run("pull").output.hasPrefix("pulled 3, "))
    #expect(try await client.run("get", "deleted").output == "mine")
    #expect(try await client.run("get", "there").status == 1)
    #expect(try await client.run("compare").output == "equal, 1 comparison")
  }

  @Test("a token that reaches other entries than before is noticed, and all is pulled anew")
  func reach() async throws {
    let writer = try await PythonClient(of: url)
    for key in ["a/1", "a/2", "b/1"] { try await writer.run("put", key, "x") }
    try await writer.run("push")
    let reader = try await PythonClient(of: url)
    access.withLock { $0 = SyncAccess(to: SyncScope(keyPrefixes: ["a/"])) }
    #expect(try await reader.run("pull").output.hasPrefix("pulled 2, "))
    #expect(try await reader.run("pull").output.hasPrefix("pulled 0, "))
    access.withLock { $0 = SyncAccess(to: SyncScope(keyPrefixes: ["b/"])) }
    let noticed = try await reader.run("pull")
    #expect(noticed.status == 3 && noticed.talk.count == 1, "\(noticed.talk)")
    #expect(try await reader.run("restart").output.hasPrefix("pulled 1, "))
    #expect(try await reader.run("get", "b/1").output == "x")
    #expect(try await reader.run("get", "a/1").status == 1)
    #expect(try await reader.run("compare").output == "equal, 1 comparison")
  }

  @Test("a client that only sends says so, reads its own entries alone, and pulls nothing")
  func pushOnly() async throws {
    let client = try PythonClient()
    try await client.run("init", url, "--push-only")
    try await client.run("put", "mine", "1")
    #expect(try await client.run("push").output == "pushed 1, 1 applied")
    let other = try await PythonClient(of: url)
    try await other.run("put", "theirs", "1")
    try await other.run("push")
    try await client.run("delete", "mine")
    #expect(try await client.run("push").output == "pushed 1, 1 applied")
    #expect(try await client.run("get", "theirs").status == 1)
    let pulled = try await client.run("pull")
    #expect(pulled.status == 64 && pulled.talk.count == 1, "\(pulled.talk)")
    let sent = try server.requests.map { try WireCoder().decodeJSON($0.body) }
    let hellos = sent.compactMap { if case .helloRequest(let hello) = $0 { hello } else { nil } }
    #expect(hellos.map(\.reads) == [false, true, false])
    let pulls = sent.compactMap { if case .pullRequest(let pull) = $0 { pull } else { nil } }
    #expect(!pulls.isEmpty && pulls.allSatisfy(\.ownOnly))
    // Its first put lies before what others have appended, its delete behind that.
    #expect(try await other.run("pull").output.hasPrefix("pulled 1, "))
    #expect(try await client.run("compare").output == "+ \"theirs\"\ndifferent, 1 comparison")
    #expect(try await client.run("restart").output.hasPrefix("pulled 0, "))
    #expect(try await client.run("push").output == "pushed 0")
  }

  @Test("a change that the server refuses waits with its words, and the rest goes")
  func refused() async throws {
    let client = try await PythonClient(of: url)
    try await client.run("put", "a", "bad")
    try await client.run("put", "b", "good")
    let pushed = try await client.run("push")
    #expect(pushed.status == 2 && pushed.output == "pushed 2, 1 applied, 1 rejected")
    #expect(pushed.talk == [#""a": rejected: invalid: it is bad"#])
    #expect(try await client.run("push").output == "pushed 0")
    try await client.run("put", "a", "better")
    #expect(try await client.run("push").output == "pushed 1, 1 applied")
    #expect(try await client.run("compare").output == "equal, 1 comparison")
  }

  @Test("a copy of its state is noticed, and begins anew without losing anything")
  func copied() async throws {
    let client = try await PythonClient(of: url)
    try await client.run("put", "a", "1")
    try await client.run("push")
    let copy = try client.copy()
    try await client.run("put", "b", "2")
    try await client.run("push")
    try await copy.run("put", "c", "3")
    let noticed = try await copy.run("push")
    #expect(noticed.status == 3 && noticed.talk.count == 1)
    #expect(try await copy.run("restart").output.hasPrefix("pulled 2, "))
    #expect(try await copy.run("push").output == "pushed 1, 1 applied")
    #expect(try await copy.run("compare").output == "equal, 1 comparison")
    #expect(try await client.run("pull").output.hasPrefix("pulled 1, "))
    #expect(try await client.run("compare").output == "equal, 1 comparison")
  }
}
