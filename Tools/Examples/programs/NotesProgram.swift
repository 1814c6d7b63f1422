public import ArgumentParser
import CollectionExamples
import RestExample
import Tidemark
import TidemarkSync

/// Notes in a terminal, which other devices have as well.
public struct NotesProgram: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "notes", abstract: "Keeps notes here, and in step with other devices.",
    discussion: "Type: add TEXT, done ID, edit ID TEXT, delete ID, undo ID, find WORDS, list.")

  @Option(help: "The store, a directory; made where there is none.")
  var data = "notes.tidemark"

  @Option(help: "The REST server to sync with, such as http://127.0.0.1:8000.")
  var server: String?

  public init() {}

  public func run() async throws {
    let store = try await Store.open(at: data)
    let terminal = Terminal()
    defer { terminal.restore() }
    try await run(store, input: terminal.input) { terminal.show($0, typed: $1) }
    try await store.close()
  }

  /// Runs until the input ends.
  func run(
    _ store: Store, input: AsyncStream<Input>, show: @escaping @Sendable ([String], String) -> Void
  ) async throws {
    let list = try NoteList(store)
    let screen = NoteScreen(show)
    let before = try await list.run("list")
    await screen.change { $0.rows = before }
    let replicator = try replicator(of: store)
    replicator?.start()
    let followers = [
      Task { try await Self.follow(list, replicator, screen) },
      Task {
        guard let replicator else { return }
        for await status in replicator.statuses() {
          await screen.change { $0.status = Self.line(status) }
        }
      },
    ]
    for await input in input {
      switch input {
      case .typing(let text): await screen.change { $0.typed = text }
      case .line(let line) where !line.isEmpty:
        let answer: [String]
        do { answer = try await list.run(line) } catch { answer = ["\(error)"] }
        await screen.change { $0.answer = answer }
      case .line, .end: break
      }
    }
    for follower in followers { follower.cancel() }
    // A last try; whatever cannot go now goes when the program runs again.
    let left = try await replicator?.syncOnce(deadline: .now + .seconds(2)).pending.entries ?? 0
    await replicator?.stop()
    if left > 0 { await screen.change { $0.answer = ["\(left) to send the next time"] } }
  }

  private func replicator(of store: Store) throws -> Replicator? {
    guard let server else { return nil }
    // A plain REST server does not say when there is news, so it is asked.
    return try store.replicator(
      named: server, peer: RestBackEnd(url: server).peer(),
      scope: SyncScope(keyPrefixes: ["notes/"]), resolver: .mergeFields(),
      configuration: .init(pollInterval: .seconds(1), longestRetry: .seconds(10)))
  }

  /// Shows the list as it changes here and elsewhere, and how far each note has come.
  private static func follow(
    _ list: NoteList, _ replicator: Replicator?, _ screen: NoteScreen
  ) async throws {
    var marks: Task<Void, any Error>?
    defer { marks?.cancel() }
    for try await notes in list.screens {
      marks?.cancel()
      _ = await marks?.result
      marks = Task {
        guard let replicator else {
          return await screen.change { $0.rows = notes.map { NoteList.line($0) } }
        }
        for try await states in try list.notes.syncStates(of: notes.ids, by: replicator) {
          let rows = notes.map { NoteList.line($0, mark: mark(states[$0.id])) }
          await screen.change { $0.rows = rows }
        }
      }
    }
  }

  private static func mark(_ state: KeyState?) -> String {
    switch state {
    case .synced: "synced"
    case .waiting(.parked(let rejection)): "refused: \(rejection.message)"
    case .waiting: "pending"
    case .local, nil: "here only"
    }
  }

  private static func line(_ status: SyncStatus) -> String {
    guard let error = status.lastError else {
      return status.lastSuccess == nil ? "connecting" : "online"
    }
    return "offline, \(status.pending.entries) to send: \(error.message)"
  }
}

/// The screen's parts, which change one by one.
private actor NoteScreen {
  struct Parts: Equatable {
    var rows: [String]?
    var status = "offline, without a server"
    var answer: [String] = []
    var typed = ""
  }

  private var parts = Parts()
  private let show: @Sendable ([String], String) -> Void

  init(_ show: @escaping @Sendable ([String], String) -> Void) { self.show = show }

  func change(_ body: @Sendable (inout Parts) -> Void) {
    let before = parts
    body(&parts)
    guard parts != before, let rows = parts.rows else { return }
    show(["-- \(rows.count) notes, \(parts.status)"] + rows + parts.answer, parts.typed)
  }
}
