public import ArgumentParser
import CollectionExamples
import Foundation
import Tidemark

/// A browser of a distribution's packages, which searches while somebody types.
public struct PackagesProgram: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "packages", abstract: "Searches a distribution's packages as you type.",
    discussion: "Type words, or section:NAME and words; control-C ends it.")

  @Argument(help: "Packages as lines of JSON, packed by zstd or not: fills the store, once.")
  var file: String?

  @Option(help: "The store, a directory; made where there is none.")
  var data = "packages.tidemark"

  public init() {}

  public func run() async throws {
    let store = try await Store.open(at: data)
    let browser = try PackageBrowser(store)
    try await fill(store, browser) { FileHandle.standardError.write(Data("\($0)\n".utf8)) }
    guard try browser.count() > 0 else {
      throw ValidationError("The store \(data) is empty: name a file of packages.")
    }
    let terminal = Terminal()
    defer { terminal.restore() }
    if terminal.isInteractive { terminal.show(try Self.answer(browser, "")) }
    for await input in terminal.input {
      switch input {
      case .typing(let text): terminal.show(try Self.answer(browser, text), typed: text)
      case .line(let text) where !terminal.isInteractive:
        terminal.show(try Self.answer(browser, text))
      case .line, .end: break
      }
    }
    try await store.close()
  }

  /// Reads the file, unless a run before has read it to its end.
  func fill(_ store: Store, _ browser: PackageBrowser, tell: (String) -> Void) async throws {
    guard let file else { return }
    guard try store.text(forKey: Self.filled) == nil else {
      return tell("The store is filled already; \(file) is not read again.")
    }
    let reader = try LineReader(file)
    var packages: [PackageBrowser.Package] = []
    var (count, skipped) = (0, 0)
    while let line = try reader.next() {
      do { packages.append(try Self.package(line)) } catch {
        skipped += 1
        // More of them say nothing new.
        if skipped <= 10 { tell("line \(reader.number) is no package: \(Self.reason(error))") }
      }
      guard packages.count == 1_000 else { continue }
      try await browser.add(packages)
      count += packages.count
      packages = []
      if count % 10_000 == 0 { tell("\(count) packages ...") }
    }
    try await browser.add(packages)
    count += packages.count
    tell("\(try browser.count()) packages, \(skipped) lines were none")
    guard count > 0 else { return }
    try await store.put(Self.filled, file)
  }

  private static let filled = "filled-from"

  /// A line of an import, whose value is a package, or a package itself.
  private static func package(_ line: Data) throws -> PackageBrowser.Package {
    struct Line: Decodable { var value: String? }
    let value = try JSONDecoder().decode(Line.self, from: line).value
    return try JSONDecoder().decode(
      PackageBrowser.Package.self, from: value.map { Data($0.utf8) } ?? line)
  }

  private static func reason(_ error: any Error) -> String {
    switch error as? DecodingError {
    case .keyNotFound(let key, _): "it has no \(key.stringValue)"
    case .typeMismatch(_, let place), .valueNotFound(_, let place):
      "\(place.codingPath.last?.stringValue ?? "the line") is something else"
    default: "it is no JSON"
    }
  }

  /// The packages that fit, as lines.
  static func answer(_ browser: PackageBrowser, _ typed: String) throws -> [String] {
    let words = typed.split(separator: " ")
    let name = words.first { $0.hasPrefix("section:") }?.dropFirst("section:".count)
    let text = words.filter { !$0.hasPrefix("section:") }.joined(separator: " ")
    if let name, try !browser.has(section: String(name)) {
      let sections = try browser.sections().filter { $0.hasPrefix(name) }
      return sections.isEmpty ? ["no such section"] : sections.map { "section:\($0)" }
    }
    let found =
      if let name, text.isEmpty { try browser.largest(in: String(name)) } else {
        try browser.suggestions(for: text, in: name.map(String.init))
      }
    return found.isEmpty ? ["nothing"] : found.map(line)
  }

  private static func line(_ package: PackageBrowser.Package) -> String {
    let name = package.name.padding(toLength: 28, withPad: " ", startingAt: 0)
    return "\(package.name.count > 28 ? package.name : name) \(package.section), "
      + "\(package.size / 1_000) kB: \(package.description ?? "")"
  }
}
