// swift-tools-version: 6.2
import PackageDescription

// A caching proxy over HTTPCache: `Tools/Examples/cacheproxy` builds and runs it.
let package = Package(
  name: "cacheproxy",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "tidemark", path: "../../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
  ],
  targets: [
    .executableTarget(
      name: "cacheproxy",
      dependencies: [
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkHTTP", package: "tidemark"),
        .product(name: "TidemarkHTTPCache", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
      ])
  ],
  swiftLanguageModes: [.v6]
)
