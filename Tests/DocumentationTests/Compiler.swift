import Foundation

/// The compiler, run once for many snippets against the modules of the running build.
enum Compiler {
  /// Where the tests and the modules were built.
  private static var products: URL {
    #if canImport(Darwin)
      for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
        return bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return Bundle.main.bundleURL
  }

  /// How a program that copies a snippet may be compiled.
  enum Mode: String, CaseIterable {
    case swift6 = "-swift-version 6"
    case swift5 = "-swift-version 5"
    /// As new projects of Xcode are.
    case mainActor = "-swift-version 6 -default-isolation MainActor"
    case mainActor5 = "-swift-version 5 -default-isolation MainActor"
  }

  /// The compiler's errors, each as "article:line:column: error: …"; none when all is well.
  static func errors(in snippets: [Snippet], mode: Mode = .swift6) throws -> [String] {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "snippets-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var files: [String] = []
    for (index, snippet) in snippets.enumerated() {
      let file = folder.appending(path: "Snippet\(index).swift")
      try Data(SnippetSource(snippet).text(name: "Snippet\(index)").utf8).write(to: file)
      files.append(file.path)
    }
    let (status, _, talk) = try run(
      arguments() + mode.rawValue.split(separator: " ").map(String.init) + files)
    let errors = talk.split(separator: "\n").map(String.init).filter { $0.contains(": error: ") }
    if status != 0, errors.isEmpty {
      throw DocumentationError(description: "swiftc ended with \(status): \(talk)")
    }
    return errors
  }

  /// Compiles up to SIL, since only there initialization, ownership and isolation are checked.
  private static func arguments() throws -> [String] {
    var arguments = [
      "swiftc", "-emit-sil", "-o", "/dev/null", "-wmo", "-Onone", "-suppress-warnings",
      "-diagnostic-style", "llvm", "-parse-as-library", "-module-name", "Snippets",
      "-module-cache-path", products.appending(path: "ModuleCache").path,
      "-I", products.appending(path: "Modules").path,
    ]
    // zstd's own module map exists only in a build with the trait BundledZstd.
    let maps =
      [
        Article.root.appending(path: "Sources/CZstd/module.modulemap"),
        products.appending(path: "../../checkouts/zstd/lib/module.modulemap"),
      ]
      + ["CTidemark", "CTidemarkHTTP"].map {
        products.appending(path: "\($0).build/module.modulemap")
      }
    for map in maps where FileManager.default.fileExists(atPath: map.path) {
      arguments += ["-Xcc", "-fmodule-map-file=\(map.path)"]
    }
    #if canImport(Darwin)
      // Testing is no part of the SDK there.
      let platform = try run(["xcrun", "--show-sdk-platform-path"]).output
        .trimmingCharacters(in: .whitespacesAndNewlines)
      arguments += ["-F", platform + "/Developer/Library/Frameworks"]
    #endif
    return arguments
  }

  private static func run(
    _ arguments: [String]
  ) throws -> (status: Int32, output: String, talk: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    let file = FileManager.default.temporaryDirectory
      .appending(path: "talk-\(UUID().uuidString)")
    try Data().write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = try FileHandle(forWritingTo: file)
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (
      process.terminationStatus, String(decoding: output, as: UTF8.self),
      try String(contentsOf: file, encoding: .utf8)
    )
  }
}
