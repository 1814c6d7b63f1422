/// The names in a manifest, or in a part of one, for which the package's own manifest has to vouch.
enum ManifestNames {
  /// Products, traits and platforms that a snippet names and the manifest does not have, as
  /// "article:line: name".
  static func unknown(in snippet: Snippet, manifest: String) -> [String] {
    snippet.code.lines.enumerated().flatMap { index, line in
      names(in: line).filter { !known(manifest).contains($0) }
        .map { "\(snippet.article):\(snippet.code.line + index): \($0)" }
    }
  }

  /// The names in a line.
  static func names(in line: String) -> [String] {
    var names: [String] = []
    if let product = line.firstMatch(of: /\.product\(name: "([^"]+)", package: "tidemark"/) {
      names.append(String(product.1))
    }
    if let traits = line.firstMatch(of: /traits: \[([^\]]*)\]/) {
      names += traits.1.matches(of: /"([^"]+)"/).map { String($0.1) }
    }
    return names + line.matches(of: /\.[a-zA-Z]+OS\(\.v[0-9_]+\)/).map { String($0.0) }
  }

  private static func known(_ manifest: String) -> Set<String> {
    let products = manifest.matches(of: /\.library\(name: "([^"]+)"/).map { String($0.1) }
    let traits = manifest.matches(of: /\.trait\(\s*name: "([^"]+)"/).map { String($0.1) }
    let platforms = manifest.matches(of: /\.[a-zA-Z]+OS\(\.v[0-9_]+\)/).map { String($0.0) }
    return Set(products + traits + platforms)
  }
}
