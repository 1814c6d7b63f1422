internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// A command that may speak to a peer at a URL.
protocol RemoteCommand: ToolCommand {
  var remote: RemoteTarget? { get }
}

/// Where a peer is: a URL, or the directory of another store.
struct RemoteTarget: ExpressibleByArgument, Hashable {
  let text: String

  init(argument: String) { text = argument }

  /// The scheme of a URL in lower case, whether or not a peer can be reached by it; nil for a path.
  private var scheme: String? {
    guard let end = text.firstRange(of: "://")?.lowerBound, text.first?.isLetter == true else {
      return nil
    }
    let scheme = text[..<end]
    let isScheme = scheme.utf8.allSatisfy {
      $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z")
        || $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") || "+-.".utf8.contains($0)
    }
    return isScheme ? scheme.lowercased() : nil
  }

  var isURL: Bool { scheme == "http" || scheme == "https" }

  /// Refuses a URL of another scheme, which would be taken for a path.
  func checkScheme() throws(ToolError) {
    guard let scheme, !isURL else { return }
    throw ToolError(
      .usage,
      "\(text) is a URL of \(scheme); a peer is reached by http:// or https://, or is a directory: "
        + "one of this name is ./\(text)")
  }

  /// The name that a store knows the peer by, if nothing else was said: the URL without what ends
  /// it, or the directory's path from the root.
  func name() throws(ToolError) -> String {
    if isURL { return String(text.trimmingSuffix { $0 == "/" }) }
    guard !text.hasPrefix("/") else { return Self.normalized(text) }
    guard let directory = SystemCalls.workingDirectory() else {
      throw ToolError(.failed, "the working directory has no path; give --name, or a full path")
    }
    return Self.normalized(directory + "/" + text)
  }

  /// Makes sure that this is another store than the one at a path: a store cannot be opened for
  /// writing twice.
  func check(isNot path: String) throws(ToolError) {
    guard !isURL, try RemoteTarget(argument: path).name() == name() else { return }
    throw ToolError(.failed, "source and target are the same store; give two different ones")
  }

  /// A path without `.`, `..` and slashes that say nothing.
  private static func normalized(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }
}

extension String {
  fileprivate func trimmingSuffix(_ isUnwanted: (Character) -> Bool) -> Substring {
    var rest = self[...]
    while let last = rest.last, isUnwanted(last) { rest.removeLast() }
    return rest
  }
}

/// Options of commands that speak to a peer.
struct RemoteOptions: ParsableArguments {
  @Option(
    name: .customLong("to-key-file"),
    help: ArgumentHelp(
      "The key of the peer's directory, or the word none; else it has that of the store.",
      valueName: "file"),
    completion: .file())
  var keyFile: String?

  @Option(
    name: .customLong("token-file"),
    help: ArgumentHelp(
      "A file with the token that a URL takes; without it TIDEMARK_TOKEN counts.",
      valueName: "file"),
    completion: .file())
  var tokenFile: String?

  /// Opens the peer.
  /// - Parameter access: what to do about a directory where no store is.
  func open(
    _ target: RemoteTarget, _ access: Store.Access, _ console: Console
  ) throws -> any Peer {
    if target.isURL {
      guard let open = console.openPeer else {
        throw ToolError(.failed, "this executable does not speak to URLs")
      }
      let token = try token(console)
      let url = target.text
      return try Waiting.run(console) { try await open(url, token) }
    }
    let store = StoreAccess(
      target.text, console, keyFiles: keyFile.map { $0 == "none" ? [] : [$0] })
    return try StorePeer(
      Store.openBlocking(at: target.text, configuration: store.configuration(access)))
  }

  private static let longestToken = 64 << 10

  private func token(_ console: Console) throws(ToolError) -> String? {
    guard let tokenFile else { return console.environment("TIDEMARK_TOKEN") }
    let bytes = try InputStream.open(tokenFile).readAll(atMost: Self.longestToken)
    let text = String(decoding: bytes, as: UTF8.self)
    return String(text.filter { !$0.isWhitespace })
  }
}
