import { render } from 'preact';
import { App } from './app.js';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/parts.css';

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
