/// An HTTP or HTTPS URL, as a person writes it or as a redirect gives it.
package struct HTTPAddress: Sendable, Hashable, CustomStringConvertible {
  /// Most bytes of an address; longer ones are refused.
  package static let longest = 2_048

  /// `http` or `https`.
  package var scheme: String
  /// The host in lower case, with the port unless it is the scheme's own.
  package var authority: String
  /// Empty, or beginning with `/`; a query is part of it.
  package var path: String

  /// Reads an absolute address.
  /// - Parameter longest: its most bytes.
  /// - Returns: nil for another scheme, for an address with a user or a password, and for anything
  ///   that is no address. A fragment (`#`) is dropped. Visible characters that a path should have
  ///   escaped are accepted, as many addresses have them.
  package init?(_ text: String, longest: Int = Self.longest) {
    let bytes = Array(text.utf8)
    guard bytes.count <= longest, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { return nil }
    let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
    let scheme = String(
      decoding: bytes[..<colon].map(HTTPHeaders.lowercased), as: UTF8.self)
    guard scheme == "http" || scheme == "https",
      bytes[colon...].starts(with: Array("://".utf8))
    else { return nil }
    var rest = bytes[(colon + 3)...]
    rest = rest.prefix { $0 != UInt8(ascii: "#") }
    let end = rest.firstIndex { "/?".utf8.contains($0) } ?? rest.endIndex
    guard let authority = Self.authority(rest[..<end], scheme) else { return nil }
    self.scheme = scheme
    self.authority = authority
    path = String(decoding: rest[end...], as: UTF8.self)
    if path.hasPrefix("?") { path = "/" + path }
  }

  private static func authority(_ text: ArraySlice<UInt8>, _ scheme: String) -> String? {
    guard !text.contains(UInt8(ascii: "@")) else { return nil }
    let bracket = text.lastIndex(of: UInt8(ascii: "]"))
    let colon = text[(bracket ?? text.startIndex)...].firstIndex(of: UInt8(ascii: ":"))
    let host = text[..<(colon ?? text.endIndex)]
    guard host.count >= 1, (bracket != nil) == (host.first == UInt8(ascii: "[")) else {
      return nil
    }
    if let bracket {
      guard bracket == host.endIndex - 1,
        host.dropFirst().dropLast().allSatisfy({ isHexDigit($0) || ":.".utf8.contains($0) })
      else { return nil }
    } else {
      guard host.allSatisfy({ isNameByte($0) }) else { return nil }
    }
    let name = String(decoding: host.map(HTTPHeaders.lowercased), as: UTF8.self)
    guard let colon else { return name }
    let digits = String(decoding: text[(colon + 1)...], as: UTF8.self)
    if digits.isEmpty { return name }
    guard let port = HTTPHeaders.number(digits, digits: 1...5), (1...65_535).contains(port) else {
      return nil
    }
    return port == (scheme == "https" ? 443 : 80) ? name : "\(name):\(port)"
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool { Hex.value(byte | 0x20) != nil }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    let lower = HTTPHeaders.lowercased(byte)
    return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
      || byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || "-._~%".utf8.contains(byte)
  }

  /// The address as text.
  package var description: String { "\(scheme)://\(authority)\(path)" }

  /// The target of a redirect to the same server.
  /// - Parameter location: the header `Location`: an absolute address, or one that is relative to
  ///   this one (RFC 3986, 5.2).
  /// - Returns: nil for another server, or for an invalid address.
  package func redirected(to location: String) -> HTTPAddress? {
    guard !location.isEmpty else { return nil }
    let end = location.firstIndex { ":/?#".contains($0) }
    let text: String
    if let end, location[end] == ":" {
      text = location
    } else if location.hasPrefix("//") {
      text = "\(scheme):\(location)"
    } else {
      text = "\(scheme)://\(authority)" + merged(with: location)
    }
    guard let address = HTTPAddress(text, longest: text.utf8.count), address.scheme == scheme,
      address.authority == authority
    else { return nil }
    return address
  }

  /// The path of a relative reference resolved against this one, without `.` and `..`.
  private func merged(with reference: String) -> String {
    let here = path.prefix { $0 != "?" }
    if reference.hasPrefix("#") { return path }
    if reference.hasPrefix("?") { return String(here) + reference }
    let rest = reference.firstIndex { "?#".contains($0) } ?? reference.endIndex
    let isAbsolute = reference.hasPrefix("/")
    let folder = isAbsolute ? "" : here[..<(here.lastIndex(of: "/") ?? here.endIndex)] + "/"
    var segments: [Substring] = []
    let all = (folder + reference[..<rest]).split(separator: "/", omittingEmptySubsequences: false)
    for segment in all.dropFirst() {
      if segment == ".." { _ = segments.popLast() }
      if ![".", ".."].contains(segment) { segments.append(segment) }
    }
    if let last = all.last, [".", ".."].contains(last) { segments.append("") }
    return "/" + segments.joined(separator: "/") + reference[rest...]
  }
}
