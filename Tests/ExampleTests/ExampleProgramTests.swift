import ArgumentParser
import CollectionExamples
import Foundation
import RestExample
import Testing
import Tidemark

@testable import ExamplePrograms

/// The programs under `Tools/Examples`, without a terminal.
@Suite("Example programs", .timeLimit(.minutes(20)))
struct ExampleProgramTests {
  /// A device with the notes: lines go in, screens come out.
  private final class Device {
    private let typing: AsyncStream<Input>.Continuation
    private var screens: AsyncStream<[String]>.AsyncIterator
    private let task: Task<Void, any Error>
    private var screen: [String] = []

    init(_ store: Store, server: String) throws {
      let (input, typing) = AsyncStream.makeStream(of: Input.self)
      let (screens, shown) = AsyncStream.makeStream(of: [String].self)
      self.typing = typing
      self.screens = screens.makeAsyncIterator()
      let program = try NotesProgram.parse(["--server", server])
      task = Task {
        defer { shown.finish() }
        try await program.run(store, input: input) { lines, _ in shown.yield(lines) }
      }
    }

    func type(_ line: String) { typing.yield(.line(line)) }

    /// Waits for a screen with as many lines that end so.
    func sees(_ count: Int, _ end: String) async throws {
      while screen.dropFirst().count(where: { $0.hasSuffix(end) }) != count {
        screen = try #require(await screens.next(), "the program has ended: \(screen)")
      }
    }

    func seesOffline() async throws {
      while screen.first?.contains("offline, ") != true {
        screen = try #require(await screens.next(), "the program has ended: \(screen)")
      }
    }

    func end() async throws -> [String] {
      typing.finish()
      while let next = await screens.next() { screen = next }
      try await task.value
      return screen
    }
  }

  private func file(_ ending: String) -> URL {
    FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID())\(ending)")
  }

  @Test("two devices keep the same notes over a REST script that is away for a while")
  func notes() async throws {
    let file = file(".jsonl")
    defer { try? FileManager.default.removeItem(at: file) }
    var script = try RestScript(file: file)
    let stores = [try await Store.open(at: .inMemory), try await Store.open(at: .inMemory)]
    var devices = try stores.map { try Device($0, server: script.url) }
    devices[0].type("add Buy milk")
    devices[1].type("add Call Ada")
    for device in devices { try await device.sees(2, "(synced)") }

    script.stop()
    devices[0].type("add Water the plants")
    try await devices[0].sees(1, "Water the plants  (pending)")
    try await devices[0].seesOffline()
    // The program ends meanwhile, and says what it leaves.
    #expect(try await devices[0].end().last == "1 to send the next time")
    devices[1].type("add Read")
    try await devices[1].sees(1, "Read  (pending)")

    script = try RestScript(file: file, port: script.port)
    defer { script.stop() }
    devices[0] = try Device(stores[0], server: script.url)
    for device in devices { try await device.sees(4, "(synced)") }
    let notes = try stores.map { try NoteList($0).notes.all() }
    #expect(notes[0].count == 4 && notes[0] == notes[1])

    let id = try #require(notes[0].first { $0.text == "Buy milk" }?.id)
    devices[1].type("edit \(id.prefix(8)) Buy tea")
    try await devices[0].sees(1, "Buy tea  (synced)")
    devices[0].type("nonsense")
    #expect(try await devices[0].end().last?.hasPrefix("add TEXT") == true)
    _ = try await devices[1].end()
    for store in stores { try await store.close() }
  }

  @Test("a server's address that is none leaves the notes as they are, and says so")
  func unreachable() async throws {
    let store = try await Store.open(at: .inMemory)
    let device = try Device(store, server: "nowhere")
    device.type("add Buy milk")
    try await device.sees(1, "Buy milk  (pending)")
    try await device.seesOffline()
    #expect(try await device.end().last == "1 to send the next time")
    try await store.close()
  }

  @Test("packages are read once, and lines that are none are named by their numbers")
  func filled() async throws {
    let file = file(".ndjson")
    defer { try? FileManager.default.removeItem(at: file) }
    let lines = [
      #"{"name":"zlib1g","section":"libs","size":5000,"description":"compression library"}"#,
      "no JSON",
      #"{"key":"a","value":"{\"name\":\"gzip\",\"section\":\"utils\",\"size\":3000}"}"#,
      #"{"name":"half"}"#, "", #"{"name":"a","section":"b","size":"c"}"#,
      #"{"name":"zstd","section":"utils","size":9000}"#,
    ]
    try Data(lines.joined(separator: "\n").utf8).write(to: file)
    let store = try await Store.open(at: .inMemory)
    let browser = try PackageBrowser(store)
    let program = try PackagesProgram.parse([file.path])
    var said: [String] = []
    try await program.fill(store, browser) { said.append($0) }
    #expect(
      said == [
        "line 2 is no package: it is no JSON", "line 4 is no package: it has no section",
        "line 5 is no package: it is no JSON", "line 6 is no package: size is something else",
        "3 packages, 4 lines were none",
      ])
    try await program.fill(store, browser) { said.append($0) }
    #expect(said.last == "The store is filled already; \(file.path) is not read again.")
    func names(_ typed: String) throws -> [String] {
      try PackagesProgram.answer(browser, typed).map { "\($0.prefix { $0 != " " })" }
    }
    #expect(try names("z") == ["zlib1g", "zstd"])
    #expect(try names("section:utils z") == ["zstd"])
    #expect(try names("section:utils") == ["zstd", "gzip"])
    #expect(try names("section:l compr") == ["section:libs"])
    #expect(try names("section:libs compr") == ["zlib1g"])
    #expect(try PackagesProgram.answer(browser, "section:x") == ["no such section"])
    #expect(try PackagesProgram.answer(browser, "\u{0}'%\"*") == ["nothing"])
    try await store.close()
  }

  @Test("a packed file is read, one that is missing or broken is refused")
  func packed() async throws {
    let fixtures = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Fixtures")
    let sample = fixtures.appending(path: "debian-sample.ndjson.zst")
    let store = try await Store.open(at: .inMemory)
    let browser = try PackageBrowser(store)
    let broken = file(".zst")
    try Data(contentsOf: sample).prefix(10_000).write(to: broken)
    defer { try? FileManager.default.removeItem(at: broken) }
    for path in [broken.path, "missing.ndjson"] {
      let program = try PackagesProgram.parse([path])
      await #expect(throws: LineReader.Failure.self) {
        try await program.fill(store, browser) { _ in }
      }
    }
    var said: [String] = []
    try await PackagesProgram.parse([sample.path]).fill(store, browser) { said.append($0) }
    #expect(said == ["1996 packages, 0 lines were none"])
    try await store.close()
  }

  @Test("a ledger takes payments, and says why it does not")
  func ledger() async throws {
    let store = try await Store.open(at: .inMemory)
    let (input, typing) = AsyncStream.makeStream(of: Input.self)
    for line in [
      "pay ada bob 30", "pay ada bob x", "payments ada", "undo", "undo", "balance ada", "", "what",
    ] { typing.yield(.line(line)) }
    typing.finish()
    var shown: [[String]] = []
    try await LedgerProgram.parse([]).run(store, input: input) { lines, _ in shown.append(lines) }
    let help = ["pay FROM TO AMOUNT, undo, balance WHO, payments WHO"]
    #expect(
      shown == [
        help, ["ada: -30", "bob: 30"], ["an amount is a whole number"], ["30 to bob"],
        ["the last payment is taken back"], ["nothing was paid since the start"], ["ada: 0"], help,
      ])
    try await store.close()
  }

  @Test("keys make a line, and those that mean something else do not")
  func keys() {
    var editor = LineEditor()
    #expect(editor.take(Array("caf".utf8)) == [.typing("caf")])
    #expect(editor.take([0xc3]).count == 1)
    #expect(editor.take([0xa9]) == [.typing("café")])
    #expect(editor.take([0x7f, 0x08]) == [.typing("ca")])
    #expect(editor.take([0x1b, 0x5b, 0x41]) == [.typing("ca")])
    #expect(editor.take([0x74, 0x0d]) == [.line("cat"), .typing("")])
    #expect(editor.take(Array("x\u{15}y".utf8)) == [.typing("y")])
    #expect(editor.take([0x7a, 0x03, 0x7a]) == [.end])
    #expect(editor.take([UInt8](repeating: 0x61, count: 9_000)).first != nil)
    #expect(editor.take([0x0a]).first?.length == 4_096)
  }
}

extension Input {
  fileprivate var length: Int? { if case .line(let text) = self { text.utf8.count } else { nil } }
}
