import Foundation
import GRDB
import Testing
import Tidemark

@testable import GRDBNotes
@testable import TidemarkNotes

/// The list of what is to be done, by either library.
private protocol Half: Sendable {
  func save(_ id: String, _ title: String) async throws
  func finish(_ id: String) async throws
  func follow(show: ([String]) -> Void) async throws
}

extension TidemarkNotes.NotesScreen: Half {
  func save(_ id: String, _ title: String) async throws {
    try await save(TidemarkNotes.Note(id: id, title: title))
  }
}

extension GRDBNotes.NotesScreen: Half {
  func save(_ id: String, _ title: String) async throws {
    try await save(GRDBNotes.Note(id: id, title: title))
  }
}

@Suite("The screen of the comparison", .timeLimit(.minutes(20)))
struct ComparisonTests {
  /// The changes, and the screen after each.
  private static let steps: [(change: @Sendable (any Half) async throws -> Void, [String])] = [
    ({ try await $0.save("1", "water the plants") }, ["water the plants"]),
    ({ try await $0.save("2", "Call Ada") }, ["Call Ada", "water the plants"]),
    ({ try await $0.save("3", "buy milk") }, ["buy milk", "Call Ada", "water the plants"]),
    ({ try await $0.finish("1") }, ["buy milk", "Call Ada"]),
    ({ try await $0.save("3", "Drink milk") }, ["Call Ada", "Drink milk"]),
    ({ try await $0.finish("2") }, ["Drink milk"]),
    ({ try await $0.finish("3") }, []),
  ]

  /// The screens of a half, one for each step.
  private func screens(of half: some Half) async throws -> [[String]] {
    let (stream, continuation) = AsyncStream.makeStream(of: [String].self)
    let follower = Task {
      try await half.follow { continuation.yield($0) }
      continuation.finish()
    }
    defer { follower.cancel() }
    var shown = stream.makeAsyncIterator()
    var screens = [try #require(await shown.next())]
    for step in Self.steps {
      try await step.change(half)
      // A screen that has not changed may be shown again.
      while let screen = await shown.next() {
        guard screen != screens.last else { continue }
        screens.append(screen)
        break
      }
    }
    return screens
  }

  @Test("both libraries show the same screens, one after each change")
  func same() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "tidemark-comparison-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let tidemark = try await TidemarkNotes.NotesScreen(at: folder.appending(path: "store").path)
    let grdb = try GRDBNotes.NotesScreen(at: folder.appending(path: "notes.sqlite").path)
    let expected = [[]] + Self.steps.map(\.1)
    #expect(try await screens(of: tidemark) == expected)
    #expect(try await screens(of: grdb) == expected)
    try await tidemark.notes.store.close()
    try grdb.pool.close()
  }
}
