import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// A peer in this process that can be switched off, and that can be told to fail or to hold calls.
final class SwitchedPeer: Peer {
  struct State {
    var isOn = true
    /// The failures of the next calls, first things first.
    var failures: [PeerError] = []
    /// Answers to pushes are lost while this is set; they are carried out all the same.
    var losesAnswers = false
    var calls = 0
    var pushes: [PushRequest] = []
    /// Parts of attachments' contents, and questions for these.
    var parts: [AttachRequest] = []
    var fetches: [ContentRequest] = []
    /// Whether its hello says that it takes attachments.
    var takesAttachments = true
    /// Pushes wait as long as this is set.
    var holdsPushes = false
    var waiting = 0
    /// How many pulls were asked to wait so far.
    var polls = 0
  }

  let store: Store
  let handler: SyncHandler
  private let inner: HandlerPeer
  let state = Lock(State())
  let changed = Signal()

  init(options: SyncHandler.Options = SyncHandler.Options()) throws {
    store = try Store.openBlocking(
      at: "server",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: MemoryFileSystem())))
    handler = try SyncHandler(serving: store, options: options)
    inner = HandlerPeer(handler)
  }

  /// A peer for the same server with the access of another user's token.
  init(sharing other: SwitchedPeer, access: SyncAccess = .everything) {
    store = other.store
    handler = other.handler
    inner = HandlerPeer(handler, access: access)
  }

  var capabilities: PeerCapabilities { inner.capabilities }
  var isOn: Bool {
    get { state.withLock { $0.isOn } }
    set { set { $0.isOn = newValue } }
  }

  func set(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    changed.raise()
  }

  private func pass() throws {
    try state.withLock { state in
      state.calls += 1
      if !state.isOn { throw PeerError(.unavailable, "switched off") }
      if !state.failures.isEmpty { throw state.failures.removeFirst() }
    }
  }

  /// Waits until the state is as wanted.
  func wait(until isWanted: (State) -> Bool) async throws {
    while true {
      let seen = changed.count
      if state.withLock({ isWanted($0) }) { return }
      await changed.wait(beyond: seen)
      try Task.checkCancellation()
    }
  }

  func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try pass()
    var answer = try await inner.hello(request)
    if !state.withLock({ $0.takesAttachments }) { answer.attachmentBytes = nil }
    return answer
  }

  func push(_ request: PushRequest) async throws -> PushAnswer {
    try pass()
    set { $0.pushes.append(request) }
    try await wait { !$0.holdsPushes }
    let answer = try await inner.push(request)
    if state.withLock({ $0.losesAnswers }) { throw PeerError(.unavailable, "the answer is lost") }
    return answer
  }

  func pull(_ request: PullRequest) async throws -> PullAnswer {
    try pass()
    if request.waitMilliseconds > 0 {
      set {
        $0.waiting += 1
        $0.polls += 1
      }
    }
    defer { if request.waitMilliseconds > 0 { set { $0.waiting -= 1 } } }
    return try await inner.pull(request)
  }

  func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try pass()
    return try await inner.values(request)
  }

  func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try pass()
    return try await inner.digest(request)
  }

  func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try pass()
    set { $0.parts.append(request) }
    return try await inner.attach(request)
  }

  func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try pass()
    set { $0.fetches.append(request) }
    return try await inner.fetch(request)
  }

  func close() async { await inner.close() }

  /// The server's value of a key, as text.
  func text(_ key: String) throws -> String? {
    let answer = try handler.values(
      ValuesRequest(replica: Device(99).id, keys: [Array(key.utf8)]))
    return answer.entries.first.flatMap {
      $0.kind == .put ? String(decoding: $0.content.value, as: UTF8.self) : nil
    }
  }

  /// How often each operation stands in the history.
  func repeats() throws -> Int {
    var seen: Set<OperationID> = []
    var count = 0
    var cursor = FeedPosition.beginning
    while true {
      let page = try handler.pull(PullRequest(replica: Device(98).id, after: cursor))
      for entry in page.entries where !seen.insert(entry.operation).inserted { count += 1 }
      if page.cursor.offset >= page.range.head { return count }
      cursor = page.cursor
    }
  }
}

/// The code of the error that a call ends with; nil when it does not.
func code<R>(_ body: () async throws -> R) async -> TidemarkError.Code? {
  do { _ = try await body() } catch { return (error as? TidemarkError)?.code }
  return nil
}

/// A store in memory.
func memoryStore(usesThreads: Bool = true) throws -> Store {
  try Store.openBlocking(
    at: "store",
    configuration: Store.Configuration(
      environment: Store.Environment(fileSystem: MemoryFileSystem()), usesThreads: usesThreads))
}

extension Replicator.Configuration {
  /// With waits that are short.
  static var quick: Self {
    Self(
      pollInterval: .milliseconds(20), firstRetry: .milliseconds(4), longestRetry: .milliseconds(20)
    )
  }
}

extension Replicator {
  /// Waits until the status is as wanted.
  func wait(until isWanted: (SyncStatus) -> Bool) async {
    for await status in statuses() where isWanted(status) { return }
  }
}

extension Store {
  func text(_ key: String) throws -> String? {
    try value(forKey: key).map { String(decoding: $0, as: UTF8.self) }
  }
}
