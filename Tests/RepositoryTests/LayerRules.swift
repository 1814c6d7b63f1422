/// The engine's layers: what stands where, and what may know whom.
enum LayerRules {
  private static let engine = "Sources/TidemarkEngine/"

  /// Folders by height; those of the same height do not know each other.
  private static let heights = [
    "Platform": 0, "Format": 1, "Index": 2, "Cache": 2, "Attachments": 2, "Log": 3, "Engine": 4,
  ]

  private static let everywhere: Set<String> = ["CZstd", "CTidemark", "libzstd"]
  /// Modules that one file has for all others.
  private static let inOneFile = [
    "Crypto": engine + "Platform/BlockSealer.swift",
    "CryptoKit": engine + "Platform/BlockSealer.swift",
  ]
  private static let inPlatform: Set<String> = [
    "Glibc", "Musl", "Darwin", "Android", "Synchronization",
  ]

  /// Modules whose files may import all of Foundation.
  private static let foundationModules: Set<String> = [
    "TidemarkFoundation", "TidemarkHTTP", "TidemarkHTTPCache",
  ]

  /// The layer that a file of the engine stands in.
  static func layer(of file: SourceFile) -> String? {
    guard file.path.hasPrefix(engine) else { return nil }
    let rest = file.path.dropFirst(engine.count).split(separator: "/")
    return rest.count > 1 ? String(rest[0]) : ""
  }

  static func strayFiles(_ files: [SourceFile]) -> [String] {
    files.filter { file in layer(of: file).map { heights[$0] == nil } ?? false }.map(\.path)
  }

  static func imports(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      guard let layer = layer(of: file) else {
        let module = file.path.split(separator: "/").dropFirst().first.map(String.init) ?? ""
        guard !foundationModules.contains(module) else { return [] }
        return file.imports.filter { $0 == "Foundation" }.map { "\(file.path): imports \($0)" }
      }
      let allowed = layer == "Platform" ? everywhere.union(inPlatform) : everywhere
      return file.imports.filter { !allowed.contains($0) && inOneFile[$0] != file.path }.map {
        "\(file.path): imports \($0)"
      }
    }
  }

  /// Files that name a type which a folder above or beside theirs declares.
  static func upwardNames(_ files: [SourceFile]) -> [String] {
    var declared: [String: Set<String>] = [:]
    var own: [String: Set<String>] = [:]
    for file in files {
      guard let layer = layer(of: file) else { continue }
      declared[layer, default: []].formUnion(file.types(topLevelOnly: true))
      own[layer, default: []].formUnion(file.types(topLevelOnly: false))
    }
    var result: [String] = []
    for file in files {
      guard let layer = layer(of: file), let height = heights[layer] else { continue }
      var forbidden: [String: String] = [:]
      var known: Set<String> = []
      for (other, otherHeight) in heights.sorted(by: { $0.key < $1.key }) {
        if other == layer || otherHeight < height {
          known.formUnion(own[other] ?? [])
        } else {
          for name in declared[other] ?? [] { forbidden[name] = other }
        }
      }
      let used = Set(file.tokens.filter(\.isTypeName).map(\.text))
      for name in used.subtracting(known).sorted() {
        if let other = forbidden[name] {
          result.append("\(file.path): names \(name), which \(other) declares")
        }
      }
    }
    return result
  }

  /// The files of the command line that look below a store: the log entry by entry with its epochs,
  /// content by its name, a key that is about to change. All else is what any program can do.
  private static let belowStore: Set<String> = [
    "Commands/PendingCommand.swift", "Entries/AttachmentTransfer.swift", "Entries/Exporter.swift",
    "Entries/ExplainedKey.swift", "Entries/LogFollower.swift", "Options/StoreAccess.swift",
    "Replication/ReplicationRun.swift",
  ]

  /// Places where other files of the command line name the engine or what it hands out.
  static func besideStore(_ files: [SourceFile]) -> [String] {
    let folder = "Sources/LogtoolKit/"
    let names: Set<String> = [
      "Engine", "EngineScan", "EngineStatus", "EngineView", "EntryInfo", "LogEntry", "ScanQuery",
    ]
    return files.filter {
      $0.path.hasPrefix(folder) && !belowStore.contains(String($0.path.dropFirst(folder.count)))
    }
    .flatMap { file in
      file.places { token, before in
        names.contains(token.text) || token.text == "engine"
      }
    }
  }

  /// Files that import the product of a trait also where the trait is off, but for its own and its
  /// tests: without the product nothing else may miss it.
  static func importsWithoutTrait(_ files: [SourceFile]) -> [String] {
    let own = ["Sources/TidemarkPostgres/", "Tests/TidemarkSyncTests/Postgres/"]
    return files.filter { file in !own.contains { file.path.hasPrefix($0) } }.flatMap { file in
      var conditions: [Substring] = []
      return file.lines.compactMap { line -> String? in
        if line.hasPrefix("#if ") { conditions.append(line) }
        if line.hasPrefix("#endif") { _ = conditions.popLast() }
        let isImport = line.hasSuffix("import TidemarkPostgres")
        return isImport && !conditions.contains("#if PostgreSQL") ? file.path : nil
      }
    }
  }

  /// Folders of a module that lean on each other in a circle, by the types they name. A type whose
  /// name is declared twice, or nested somewhere, draws no arrow.
  static func circles(_ files: [SourceFile]) -> [String] {
    let modules = Dictionary(grouping: files) { NameRules.module(of: $0) }
    return modules.sorted { $0.key ?? "" < $1.key ?? "" }.flatMap { module, files in
      module == nil ? [] : circles(within: files)
    }
  }

  private static func circles(within files: [SourceFile]) -> [String] {
    var home: [String: Set<String>] = [:]
    var free: Set<String> = []
    for file in files {
      for name in file.types(topLevelOnly: false) { home[name, default: []].insert(file.path) }
      free.formUnion(file.types(topLevelOnly: true))
    }
    var below: [String: Set<String>] = [:]
    for file in files {
      for name in Set(file.tokens.filter(\.isTypeName).map(\.text)) where free.contains(name) {
        guard let homes = home[name], homes.count == 1, let declared = homes.first else { continue }
        below[folder(of: file.path), default: []].insert(folder(of: declared))
      }
    }
    return below.keys.sorted().compactMap { start in
      var reached: Set<String> = []
      var open = Array(below[start] ?? []).filter { $0 != start }
      while let next = open.popLast() {
        guard reached.insert(next).inserted else { continue }
        open += below[next] ?? []
      }
      return reached.contains(start) ? start : nil
    }
  }

  private static func folder(of path: String) -> String {
    path.split(separator: "/").dropLast().joined(separator: "/")
  }

  /// Input, output, time, chance and threads have one door each, in Platform.
  static func sideDoors(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      guard let layer = layer(of: file), layer != "Platform" else { return [] }
      let declared = Set(
        zip(file.tokens, file.tokens.dropFirst()).filter { $0.0.text == "func" }.map(\.1.text))
      return file.places { token, next in
        if types.contains(token.text) || token.text == "hashValue" { return true }
        if modules.contains(token.text) { return next == "." }
        guard next == "(" else { return false }
        if chance.contains(token.text) { return token.before == "." }
        return calls.contains(token.text) && token.before != "." && !declared.contains(token.text)
      }
    }
  }

  private static let types: Set<String> = [
    "Date", "Task", "Thread", "DispatchQueue", "SystemRandomNumberGenerator", "ContinuousClock",
    "SuspendingClock",
  ]
  private static let modules: Set<String> = ["Glibc", "Musl", "Darwin", "Android"]
  private static let chance: Set<String> = ["random", "randomElement", "shuffle", "shuffled"]
  private static let calls: Set<String> = [
    "open", "openat", "read", "pread", "write", "pwrite", "fsync", "fdatasync", "fcntl", "close",
    "ftruncate", "unlink", "rename", "mkdir", "mmap", "flock", "stat", "fstat",
    "clock_gettime", "gettimeofday", "getrandom", "arc4random", "rand", "usleep", "sleep",
    "pthread_create",
  ]
}
