// The default theme of VitePress, with room for tables.
import DefaultTheme from "vitepress/theme";
import "./style.css";

export default DefaultTheme;
