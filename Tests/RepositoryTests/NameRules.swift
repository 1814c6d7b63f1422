/// Names that a program sees when it imports a module of ours.
enum NameRules {
  /// Modules whose types programs see; the engine's come along with Tidemark's.
  private static let products: Set<String> = [
    "TidemarkEngine", "TidemarkStore", "TidemarkCollections", "TidemarkCaches", "Tidemark",
    "TidemarkFoundation", "TidemarkSyncProtocol", "TidemarkSync", "TidemarkSyncServer",
    "TidemarkREST", "TidemarkHTTP", "TidemarkHTTPCache", "TidemarkTestKit", "TidemarkSyncTestKit",
    "TidemarkSwiftUI", "TidemarkTesting",
  ]

  /// All that `import Tidemark` shows of the engine: no file, clock or other seam for tests.
  static let engineTypes = [
    "Durability", "Encryption", "FileSystemError", "HeldHistory", "LogSpace", "ObjectPlace",
    "RepairLoss", "RepairReport", "Retention", "StoreEvent", "TidemarkError", "Timestamp",
    "VerifyFinding",
    "VerifyReport",
  ]

  static func module(of file: SourceFile) -> String? {
    let parts = file.path.split(separator: "/")
    return parts.first == "Sources" && parts.count > 2 ? String(parts[1]) : nil
  }

  /// Public types of our products whose names are taken, as "path: name".
  static func taken(_ names: Set<String>, _ files: [SourceFile]) -> [String] {
    files.filter { module(of: $0).map(products.contains) ?? false }.flatMap { file in
      file.publicTypes().filter(names.contains).map { "\(file.path): \($0)" }
    }
  }

  static func publicEngineTypes(_ files: [SourceFile]) -> [String] {
    files.filter { module(of: $0) == "TidemarkEngine" }.flatMap { $0.publicTypes() }.sorted()
  }
}

extension SourceFile {
  /// Public types that stand in no other.
  func publicTypes() -> [String] {
    let kinds: Set = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    let modifiers: Set = ["final", "indirect", "open", "nonisolated"]
    return tokens.indices.dropLast().compactMap { index in
      guard kinds.contains(tokens[index].text), tokens[index].depth == 0,
        tokens[index + 1].isTypeName
      else { return nil }
      var before = index - 1
      while before >= 0, modifiers.contains(tokens[before].text) { before -= 1 }
      return before >= 0 && tokens[before].text == "public" ? tokens[index + 1].text : nil
    }
  }
}
